"""Operations and their recovery: contracts, adapters, ledger, evidence, holds, decisions."""
