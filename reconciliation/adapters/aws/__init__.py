"""Amazon's services over plain HTTP: what is sent again is byte for byte what was sent.

A request is signed when it is sent, over the stored body. There is no SDK in between: its retries
would make of our own success a false "already exists", and its keys live no longer than a call.
"""
