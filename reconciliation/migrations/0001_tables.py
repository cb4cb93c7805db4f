"""The tables of the ledger and the review, as `makemigrations` writes them; the console's cache."""

import datetime
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.text
import reconciliation.core.channels
import reconciliation.core.review_work
import reconciliation.core.states
import workflows.models.ids
from django.conf import settings
from django.db import migrations, models


# As `createcachetable` makes it, so that many consoles count together who tried how often to sign
# in. Unlogged: a crash of the database may forget it.
CACHE = """
CREATE UNLOGGED TABLE romulus_cache (
    cache_key varchar(255) NOT NULL PRIMARY KEY,
    value text NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE INDEX romulus_cache_expires ON romulus_cache (expires);
"""
NO_CACHE = "DROP TABLE romulus_cache"


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these has these tables.
    replaces = [
        ('reconciliation', name)
        for name in (
            '0001_initial',
            '0002_append_only',
            '0003_event_holds',
            '0004_rehearsals',
            '0005_dispatch',
            '0006_addresses',
            '0007_never_sent',
            '0008_notifications',
            '0009_profile',
            '0010_accounts',
            '0011_evidence',
            '0012_engine',
            '0013_review_work',
            '0014_boundary',
            '0015_two_people',
            '0016_password_reset',
            '0017_tenant_of_holds',
            '0018_look_up_turns',
        )
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('workflows', '0001_tables'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('seq', models.BigIntegerField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('actor', models.CharField(max_length=200)),
                ('verb', models.CharField(max_length=60)),
                ('object', models.CharField(max_length=200)),
                ('detail', models.JSONField(default=dict)),
                ('salt', models.CharField(default='', max_length=32)),
                ('previous_hash', models.CharField(max_length=64)),
                ('skip_hash', models.CharField(default='', max_length=64)),
                ('hash', models.CharField(max_length=64)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'indexes': [models.Index(fields=['object', 'seq'], name='audit_object'), models.Index(fields=['actor', 'seq'], name='audit_actor'), models.Index(fields=['verb', 'seq'], name='audit_verb'), models.Index(fields=['at', 'seq'], name='audit_at')],
            },
        ),
        migrations.CreateModel(
            name='BulkAction',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=16)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('token', models.UUIDField(unique=True)),
                ('to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('until', models.DateTimeField(null=True)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('taken_until', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['made_at'], name='bulk_action_open')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['assign', 'snooze', 'remind', 'look_up'])), name='bulk_action_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='ContractVersion',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField()),
                ('version', models.PositiveIntegerField()),
                ('document', models.JSONField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('slug', 'version'), name='contract_version_once')],
            },
        ),
        migrations.CreateModel(
            name='DecisionDraft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decision_drafts', to=settings.AUTH_USER_MODEL)),
                ('case', models.UUIDField()),
                ('typed', models.JSONField()),
                ('saved_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'case'), name='draft_one_per_person_and_case')],
            },
        ),
        migrations.CreateModel(
            name='DecisionPoint',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=200)),
                ('base_url', models.CharField(max_length=300)),
                ('credential_sealed', models.BinaryField(default=b'')),
                ('timeout_seconds', models.FloatField(default=2.0, validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(30)])),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Digest',
            fields=[
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='digest', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('every', models.CharField(choices=[('day', 'day'), ('week', 'week')], max_length=4)),
                ('at', models.TimeField()),
                ('zone', models.CharField(max_length=64)),
                ('next_at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='PasswordReset',
            fields=[
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('site', models.URLField(max_length=300)),
                ('asked_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Profile',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='profile', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('time_zone', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('letters', models.BooleanField(db_default=True, default=True)),
                ('live', models.BooleanField(db_default=True, default=True)),
            ],
        ),
        migrations.CreateModel(
            name='Provider',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=200)),
                ('adapter', models.SlugField()),
                ('account', models.CharField(max_length=200)),
                ('region', models.CharField(blank=True, max_length=100)),
                ('base_url', models.CharField(max_length=300)),
                ('dashboard_url', models.CharField(blank=True, default='', max_length=300)),
                ('credential_sealed', models.BinaryField(blank=True, default=b'')),
                ('settings', models.JSONField(blank=True, default=dict)),
                ('contract_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='reconciliation.contractversion')),
                ('visible_parameters', models.JSONField(blank=True, default=list)),
                ('replay_trust', models.CharField(blank=True, max_length=300)),
                ('look_up_trust', models.CharField(blank=True, max_length=300)),
                ('look_ups_per_second', models.FloatField(db_default=10, default=10, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)])),
                ('contradicted_at', models.DateTimeField(blank=True, null=True)),
                ('contradiction', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'permissions': [('pause_dispatch', 'Can turn dispatch off and on'), ('configure', 'Can set it up')],
                'constraints': [models.CheckConstraint(condition=models.Q(('look_ups_per_second__gte', 0.01), ('look_ups_per_second__lte', 1000.0)), name='provider_look_up_rate')],
            },
        ),
        migrations.CreateModel(
            name='DispatchStop',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('provider', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='stops', to='reconciliation.provider')),
                ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workflows.tenant')),
                ('action', models.CharField(blank=True, default='', max_length=100)),
                ('state', models.CharField(max_length=8)),
                ('by', models.CharField(max_length=200)),
                ('reason', models.CharField(max_length=1000)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('until', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('until__isnull', False)), fields=['until'], name='dispatch_stop_ends')],
                'constraints': [models.UniqueConstraint(fields=('provider', 'tenant', 'action'), name='dispatch_stop_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('state__in', ['paused', 'off'])), name='dispatch_stop_state_known')],
            },
        ),
        migrations.CreateModel(
            name='LookUpPace',
            fields=[
                ('provider', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='pace', serialize=False, to='reconciliation.provider')),
                ('next_at', models.DateTimeField()),
                ('paused_until', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='workflows.run')),
                ('step', models.CharField(max_length=63)),
                ('visit', models.PositiveIntegerField()),
                ('effect', models.CharField(max_length=100)),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='reconciliation.provider')),
                ('contract_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='reconciliation.contractversion')),
                ('action', models.CharField(max_length=100)),
                ('target', models.CharField(max_length=300)),
                ('summary', models.CharField(max_length=300)),
                ('amount', models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ('currency', models.CharField(blank=True, max_length=3)),
                ('parameters_redacted', models.JSONField()),
                ('parameters_digest', models.CharField(max_length=100)),
                ('proposal', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='workflows.proposal')),
                ('idempotency_key', models.CharField(max_length=255)),
                ('key_scope', models.JSONField()),
                ('request_sealed', models.BinaryField()),
                ('first_sent_at', models.DateTimeField(null=True)),
                ('replay_not_after', models.DateTimeField(null=True)),
                ('state', models.CharField(default=reconciliation.core.states.OperationState['INTENDED'], max_length=24)),
                ('resource', models.CharField(blank=True, max_length=300)),
                ('receipt', models.JSONField(null=True)),
                ('send_again_at', models.DateTimeField(null=True)),
                ('due_at', models.DateTimeField(null=True)),
                ('turn_at', models.DateTimeField(null=True)),
                ('supersedes', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replacements', to='reconciliation.operation')),
                ('compensates', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='undos', to='reconciliation.operation')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('settled_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='operation_due'), models.Index(condition=models.Q(('proposal__isnull', False)), fields=['proposal'], name='operation_proposal'), models.Index(condition=models.Q(('state__in', frozenset([reconciliation.core.states.OperationState['ABANDONED'], reconciliation.core.states.OperationState['REJECTED'], reconciliation.core.states.OperationState['VERIFIED']])), _negated=True), fields=['state', 'id'], name='operation_unsettled'), models.Index(django.db.models.functions.text.Right(django.db.models.functions.comparison.Cast('id', models.CharField()), 6), name='operation_id_end'), models.Index(django.db.models.functions.comparison.Collate('target', 'C'), name='operation_target'), models.Index(django.db.models.functions.comparison.Collate('resource', 'C'), condition=models.Q(('resource', ''), _negated=True), name='operation_resource')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['intended', 'sending', 'unknown', 'held', 'applied', 'verified', 'postcondition_failed', 'rejected', 'abandoned'])), name='operation_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', False), ('state__in', frozenset([reconciliation.core.states.OperationState['ABANDONED'], reconciliation.core.states.OperationState['REJECTED'], reconciliation.core.states.OperationState['VERIFIED']]))), models.Q(models.Q(('state__in', frozenset([reconciliation.core.states.OperationState['ABANDONED'], reconciliation.core.states.OperationState['REJECTED'], reconciliation.core.states.OperationState['VERIFIED']])), _negated=True), ('settled_at__isnull', True)), _connector='OR'), name='operation_settled_iff_settled_at'), models.UniqueConstraint(fields=('run', 'step', 'visit', 'effect'), name='operation_once_per_effect'), models.UniqueConstraint(condition=models.Q(('supersedes__isnull', False)), fields=('supersedes',), name='operation_replaced_once'), models.UniqueConstraint(condition=models.Q(('compensates__isnull', False), ('supersedes__isnull', True)), fields=('compensates',), name='operation_undone_once'), models.UniqueConstraint(fields=('provider', 'idempotency_key'), name='operation_key_once_per_provider')],
            },
        ),
        migrations.CreateModel(
            name='Rehearsal',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rehearsals', to='reconciliation.provider')),
                ('contract_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='reconciliation.contractversion')),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('complete', models.BooleanField()),
                ('claims', models.JSONField()),
                ('cases', models.JSONField()),
                ('breaches', models.PositiveIntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['provider', '-ended_at'], name='rehearsal_latest')],
            },
        ),
        migrations.CreateModel(
            name='ReviewQueue',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=200)),
                ('tenant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='queues', to='workflows.tenant')),
                ('provider', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='queues', to='reconciliation.provider')),
                ('action', models.CharField(blank=True, max_length=100)),
                ('due_after', models.DurationField(default=datetime.timedelta(seconds=14400))),
                ('approvals_needed', models.PositiveSmallIntegerField(choices=[(1, 'one person'), (2, 'two people')], default=1)),
                ('second_from', models.DecimalField(blank=True, decimal_places=4, max_digits=20, null=True, validators=[django.core.validators.MinValueValidator(0)])),
                ('tell_before', models.DurationField(default=datetime.timedelta(seconds=3600), validators=[django.core.validators.MinValueValidator(datetime.timedelta(0))])),
                ('tell_on_call_after', models.DurationField(default=datetime.timedelta(seconds=900), validators=[django.core.validators.MinValueValidator(datetime.timedelta(0))])),
                ('tell_owners_after', models.DurationField(default=datetime.timedelta(seconds=3600), validators=[django.core.validators.MinValueValidator(datetime.timedelta(0))])),
                ('tell_administrators_after', models.DurationField(default=datetime.timedelta(seconds=14400), validators=[django.core.validators.MinValueValidator(datetime.timedelta(0))])),
                ('owners', models.ManyToManyField(blank=True, related_name='queues', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'permissions': [('decide', 'Can decide holds'), ('assign', 'Can assign holds'), ('second', 'Can confirm the decisions of others'), ('configure', 'Can set it up')],
                'constraints': [models.CheckConstraint(condition=models.Q(('approvals_needed__in', [1, 2])), name='queue_one_person_or_two')],
            },
        ),
        migrations.CreateModel(
            name='Sandbox',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('provider', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='sandbox', to='reconciliation.provider')),
                ('base_url', models.CharField(max_length=300, validators=[django.core.validators.URLValidator(['http', 'https'])])),
                ('account', models.CharField(max_length=200)),
                ('region', models.CharField(blank=True, max_length=100)),
                ('credential_sealed', models.BinaryField(blank=True, default=b'')),
                ('action', models.CharField(max_length=100)),
                ('parameters', models.JSONField(default=dict)),
                ('stand_in', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='stands_in_for', to='reconciliation.provider')),
            ],
            options={
                'verbose_name_plural': 'sandboxes',
            },
        ),
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=8)),
                ('queue', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='channels', to='reconciliation.reviewqueue')),
                ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='channels', to=settings.AUTH_USER_MODEL)),
                ('address', models.CharField(blank=True, default='', max_length=200)),
                ('address_sealed', models.BinaryField(blank=True, default=b'')),
                ('secret_sealed', models.BinaryField(blank=True, default=b'')),
                ('per_minute', models.PositiveSmallIntegerField(default=6, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(60)])),
                ('enabled', models.BooleanField(default=True)),
                ('failing_since', models.DateTimeField(null=True)),
                ('problem', models.CharField(blank=True, default='', max_length=300)),
                ('stopped_at', models.DateTimeField(null=True)),
                ('used_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('failing_since__isnull', False)), fields=['failing_since'], name='channel_failing')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['email', 'webhook', 'slack'])), name='channel_kind_known'), models.CheckConstraint(condition=models.Q(models.Q(('person__isnull', True), ('queue__isnull', False)), models.Q(('person__isnull', False), ('queue__isnull', True)), _connector='OR'), name='channel_of_a_queue_or_a_person'), models.UniqueConstraint(condition=models.Q(('address', ''), ('kind', reconciliation.core.channels.ChannelKind['EMAIL'])), fields=('person',), name='channel_account_email_once')],
            },
        ),
        migrations.CreateModel(
            name='Hold',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='workflows.run')),
                ('operation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='reconciliation.operation')),
                ('event', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='workflows.event')),
                ('queue', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='holds', to='reconciliation.reviewqueue')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='workflows.tenant')),
                ('assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('reason', models.CharField(max_length=40)),
                ('message', models.CharField(max_length=1000)),
                ('opened_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('due_at', models.DateTimeField()),
                ('state', models.CharField(default=reconciliation.core.states.HoldState['OPEN'], max_length=8)),
                ('version', models.PositiveIntegerField(default=1)),
                ('closed_at', models.DateTimeField(null=True)),
                ('snoozed_until', models.DateTimeField(null=True)),
                ('amount', models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ('window_ends_at', models.DateTimeField(null=True)),
                ('tell_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['due_at', 'id'], name='hold_open_due'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['queue', 'due_at', 'id'], name='hold_open_queue_due'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['tenant', 'queue'], name='hold_open_tenant'), models.Index(models.OrderBy(models.F('amount'), descending=True, nulls_last=True), models.OrderBy(models.F('id')), condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), name='hold_open_amount'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['window_ends_at', 'id'], name='hold_open_window'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['opened_at', 'id'], name='hold_open_age'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['assignee', 'due_at', 'id'], name='hold_open_assignee'), models.Index(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=['tell_at'], name='hold_open_tell')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['open', 'decided', 'closed'])), name='hold_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('closed_at__isnull', True), ('state', reconciliation.core.states.HoldState['OPEN'])), models.Q(models.Q(('state', reconciliation.core.states.HoldState['OPEN']), _negated=True), ('closed_at__isnull', False)), _connector='OR'), name='hold_closed_iff_closed_at'), models.CheckConstraint(condition=models.Q(models.Q(('event__isnull', True), ('run__isnull', False)), models.Q(('event__isnull', False), ('operation__isnull', True), ('run__isnull', True)), _connector='OR'), name='hold_of_a_run_or_an_event'), models.UniqueConstraint(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN'])), fields=('event',), name='hold_one_open_per_event'), models.UniqueConstraint(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN']), models.Q(('reason', 'conflict_later'), _negated=True)), fields=('run',), name='hold_one_open_per_run'), models.UniqueConstraint(condition=models.Q(('reason', 'conflict_later'), ('state', reconciliation.core.states.HoldState['OPEN'])), fields=('operation',), name='hold_one_later_conflict')],
            },
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=60)),
                ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL)),
                ('queue', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='reconciliation.reviewqueue')),
                ('query', models.CharField(blank=True, max_length=1000)),
                ('made_by', models.CharField(max_length=320)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('person__isnull', False), ('queue__isnull', True)), models.Q(('person__isnull', True), ('queue__isnull', False)), _connector='OR'), name='saved_view_of_a_person_or_a_queue'), models.UniqueConstraint(fields=('person', 'name'), name='saved_view_name_per_person'), models.UniqueConstraint(fields=('queue', 'name'), name='saved_view_name_per_queue')],
            },
        ),
        migrations.CreateModel(
            name='Shift',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('queue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shifts', to='reconciliation.reviewqueue')),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shifts', to=settings.AUTH_USER_MODEL)),
                ('weekdays', models.CharField(blank=True, default='', max_length=7)),
                ('starts', models.TimeField(blank=True, null=True)),
                ('ends', models.TimeField(blank=True, null=True)),
                ('zone', models.CharField(blank=True, default='UTC', max_length=64)),
                ('starts_at', models.DateTimeField(blank=True, null=True)),
                ('ends_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(models.Q(('weekdays', ''), _negated=True), ('ends__isnull', False), ('ends_at__isnull', True), ('starts__isnull', False), ('starts_at__isnull', True)), models.Q(('ends__isnull', True), ('ends_at__gt', models.F('starts_at')), ('starts__isnull', True), ('weekdays', '')), _connector='OR'), name='shift_weekly_or_dated')],
            },
        ),
        migrations.CreateModel(
            name='Transmission',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='transmissions', to='reconciliation.operation')),
                ('number', models.PositiveIntegerField()),
                ('attempt', models.UUIDField()),
                ('worker', models.UUIDField()),
                ('fence', models.BigIntegerField()),
                ('purpose', models.CharField(max_length=8)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('in_flight_until', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('phase', models.CharField(blank=True, max_length=8)),
                ('state', models.CharField(default=reconciliation.core.states.TransmissionState['SENDING'], max_length=16)),
                ('meaning', models.CharField(blank=True, max_length=16)),
                ('status', models.PositiveIntegerField(null=True)),
                ('resolves_earlier', models.BooleanField(default=False)),
                ('retry', models.CharField(blank=True, max_length=16)),
                ('retry_after_at', models.DateTimeField(null=True)),
                ('provider_request_id', models.CharField(blank=True, max_length=200)),
                ('detail_redacted', models.CharField(blank=True, max_length=500)),
            ],
            options={
                'indexes': [models.Index(django.db.models.functions.comparison.Collate('provider_request_id', 'C'), condition=models.Q(('provider_request_id', ''), _negated=True), name='transmission_request_id')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['sending', 'acknowledged', 'rejected', 'not_sent', 'unknown'])), name='transmission_state_known'), models.CheckConstraint(condition=models.Q(('purpose__in', ['first', 'replay'])), name='transmission_purpose_known'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', reconciliation.core.states.TransmissionState['SENDING'])), models.Q(models.Q(('state', reconciliation.core.states.TransmissionState['SENDING']), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='transmission_ended_iff_ended_at'), models.UniqueConstraint(fields=('operation', 'number'), name='transmission_number_once'), models.UniqueConstraint(condition=models.Q(('state', reconciliation.core.states.TransmissionState['SENDING'])), fields=('operation',), name='transmission_one_sending')],
            },
        ),
        migrations.CreateModel(
            name='BulkItem',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('action', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='reconciliation.bulkaction')),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.hold')),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(default=reconciliation.core.review_work.ItemState['PENDING'], max_length=8)),
                ('said', models.CharField(blank=True, max_length=500)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'done', 'skipped', 'failed'])), name='bulk_item_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', reconciliation.core.review_work.ItemState['PENDING'])), models.Q(models.Q(('state', reconciliation.core.review_work.ItemState['PENDING']), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='bulk_item_ended_iff_ended_at'), models.UniqueConstraint(fields=('action', 'hold'), name='bulk_item_once'), models.UniqueConstraint(fields=('action', 'number'), name='bulk_item_number')],
            },
        ),
        migrations.CreateModel(
            name='CaseNote',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='notes', to='reconciliation.hold')),
                ('kind', models.CharField(max_length=16)),
                ('text', models.TextField()),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('by_name', models.CharField(max_length=320)),
                ('to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('to_name', models.CharField(blank=True, max_length=320)),
                ('question', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answer', to='reconciliation.casenote')),
                ('token', models.UUIDField(unique=True)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['hold', 'at', 'id'], name='case_note_thread'), models.Index(condition=models.Q(('kind', 'question')), fields=['to', 'hold'], name='case_note_questions')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['comment', 'question', 'answer', 'handover'])), name='case_note_kind_known'), models.CheckConstraint(condition=models.Q(models.Q(('kind', reconciliation.core.review_work.NoteKind['ANSWER']), ('question__isnull', False)), models.Q(models.Q(('kind', reconciliation.core.review_work.NoteKind['ANSWER']), _negated=True), ('question__isnull', True)), _connector='OR'), name='case_note_answers_iff_answer')],
            },
        ),
        migrations.CreateModel(
            name='DecisionProposal',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='reconciliation.hold')),
                ('operation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='reconciliation.operation')),
                ('kind', models.CharField(max_length=16)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('by_name', models.CharField(max_length=320)),
                ('note', models.TextField()),
                ('resource', models.CharField(blank=True, max_length=300)),
                ('hold_version', models.PositiveIntegerField()),
                ('token', models.UUIDField()),
                ('shown', models.JSONField()),
                ('basis', models.JSONField()),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['applied', 'send_again', 'abandon', 'replace', 'undo', 'keep_holding', 'correction', 'try_again', 'fail_run'])), name='proposal_kind_known'), models.UniqueConstraint(fields=('token',), name='proposal_once_per_form'), models.UniqueConstraint(fields=('hold', 'hold_version'), name='proposal_once_per_hold_version')],
            },
        ),
        migrations.CreateModel(
            name='Evidence',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('operation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='evidence', to='reconciliation.operation')),
                ('transmission', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='reconciliation.transmission')),
                ('kind', models.CharField(max_length=16)),
                ('completes', models.BooleanField(default=False)),
                ('denies', models.BooleanField(default=False)),
                ('postcondition', models.BooleanField(null=True)),
                ('resource', models.CharField(blank=True, max_length=300)),
                ('differences', models.JSONField(default=list)),
                ('agreements', models.JSONField(default=list)),
                ('observed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('retry_after_at', models.DateTimeField(null=True)),
                ('source', models.CharField(max_length=320)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('detail_redacted', models.CharField(blank=True, max_length=1000)),
            ],
            options={
                'verbose_name_plural': 'evidence',
                'indexes': [models.Index(fields=['operation', 'recorded_at'], name='evidence_in_order'), models.Index(condition=models.Q(('source', 'duplicate audit')), fields=['-recorded_at'], name='evidence_double')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['receipt', 'lookup', 'rejection', 'absence', 'unavailable', 'conflict', 'operator'])), name='evidence_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='reconciliation.channel')),
                ('is_summary', models.BooleanField(default=False)),
                ('state', models.CharField(default=reconciliation.core.channels.MessageState['WAITING'], max_length=8)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(null=True)),
                ('problem', models.CharField(blank=True, default='', max_length=300)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='message_due'), models.Index(condition=models.Q(('state', reconciliation.core.channels.MessageState['WAITING'])), fields=['channel'], name='message_waiting'), models.Index(fields=['channel', '-created_at'], name='message_of_channel')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'sent', 'failed', 'dropped'])), name='message_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', reconciliation.core.channels.MessageState['WAITING'])), models.Q(models.Q(('state', reconciliation.core.channels.MessageState['WAITING']), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='message_ended_iff_ended_at')],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=16)),
                ('cause', models.CharField(max_length=200, unique=True)),
                ('hold', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='notifications', to='reconciliation.hold')),
                ('provider', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.provider')),
                ('queue', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.reviewqueue')),
                ('channel', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='reconciliation.channel')),
                ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rung', models.CharField(blank=True, default='', max_length=16)),
                ('says', models.JSONField(default=dict)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('addressed_at', models.DateTimeField(null=True)),
                ('reached', models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('addressed_at__isnull', True)), fields=['id'], name='notification_new')],
            },
        ),
        migrations.CreateModel(
            name='Reminder',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reminders', to='reconciliation.hold')),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reminders', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField()),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('told_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('ended_at__isnull', True), ('told_at__isnull', True)), fields=['at'], name='reminder_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('hold', 'person'), name='reminder_one_open_per_person')],
            },
        ),
        migrations.CreateModel(
            name='Decision',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('hold', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='reconciliation.hold')),
                ('operation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='reconciliation.operation')),
                ('kind', models.CharField(max_length=16)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('by_name', models.CharField(max_length=320)),
                ('note', models.TextField()),
                ('evidence', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='reconciliation.evidence')),
                ('resource', models.CharField(blank=True, max_length=300)),
                ('until', models.DateTimeField(null=True)),
                ('hold_version', models.PositiveIntegerField()),
                ('token', models.UUIDField()),
                ('shown', models.JSONField()),
                ('proposal', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='decision', to='reconciliation.decisionproposal')),
                ('second', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('second_name', models.CharField(blank=True, max_length=320)),
                ('corrects', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='corrections', to='reconciliation.decision')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['applied', 'send_again', 'abandon', 'replace', 'undo', 'keep_holding', 'correction', 'try_again', 'fail_run'])), name='decision_kind_known'), models.CheckConstraint(condition=models.Q(models.Q(('proposal', None), ('second', None)), models.Q(('proposal__isnull', False), ('second__isnull', False), models.Q(('second', models.F('by')), _negated=True)), _connector='OR'), name='decision_second_is_another'), models.CheckConstraint(condition=models.Q(models.Q(('corrects__isnull', False), ('kind', reconciliation.core.states.DecisionKind['CORRECTION'])), models.Q(models.Q(('kind', reconciliation.core.states.DecisionKind['CORRECTION']), _negated=True), ('corrects', None)), _connector='OR'), name='decision_correction_corrects'), models.UniqueConstraint(fields=('token',), name='decision_once_per_form'), models.UniqueConstraint(fields=('hold', 'hold_version'), name='decision_once_per_hold_version')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('notification', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='reconciliation.notification')),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='reconciliation.channel')),
                ('message', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='reconciliation.message')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('message__isnull', True)), fields=['channel', 'id'], name='delivery_waiting')],
                'constraints': [models.UniqueConstraint(fields=('notification', 'channel'), name='delivery_once')],
            },
        ),
        migrations.CreateModel(
            name='ProposalEnd',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('proposal', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='end', to='reconciliation.decisionproposal')),
                ('kind', models.CharField(max_length=16)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('by_name', models.CharField(blank=True, max_length=320)),
                ('note', models.TextField(blank=True)),
                ('token', models.UUIDField(null=True)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['confirmed', 'refused', 'withdrawn', 'void'])), name='proposal_end_known'), models.CheckConstraint(condition=models.Q(models.Q(('by', None), ('kind', reconciliation.core.states.ProposalEndKind['VOID'])), models.Q(models.Q(('kind', reconciliation.core.states.ProposalEndKind['VOID']), _negated=True), ('by__isnull', False), ('token__isnull', False)), _connector='OR'), name='proposal_end_by_somebody'), models.UniqueConstraint(fields=('token',), name='proposal_end_once_per_form')],
            },
        ),
        migrations.AddField(
            model_name='hold',
            name='proposal',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reconciliation.decisionproposal'),
        ),
        migrations.AddField(
            model_name='provider',
            name='default_queue',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='default_of', to='reconciliation.reviewqueue'),
        ),
        migrations.AddIndex(
            model_name='hold',
            index=models.Index(condition=models.Q(('proposal__isnull', False), ('state', reconciliation.core.states.HoldState['OPEN'])), fields=['due_at', 'id'], name='hold_open_second'),
        ),
        migrations.AddConstraint(
            model_name='hold',
            constraint=models.CheckConstraint(condition=models.Q(('state', reconciliation.core.states.HoldState['OPEN']), ('proposal', None), _connector='OR'), name='hold_proposal_only_while_open'),
        ),
        migrations.RunSQL(CACHE, NO_CACHE),
    ]
