"""The tables of the execution record, as `makemigrations` writes them; the room on their pages."""

import datetime
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.text
import workflows.core.proposals
import workflows.core.states
import workflows.models.event_source
import workflows.models.ids
from django.conf import settings
from django.db import migrations, models


# A step's new row version then lies beside the old one, and PostgreSQL changes no index for it
# (heap-only tuples), which halves what a step writes.
ROOM_FOR_UPDATES = "ALTER TABLE workflows_run SET (fillfactor = 70)"
FULL_PAGES = "ALTER TABLE workflows_run RESET (fillfactor)"


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these has these tables.
    replaces = [
        ('workflows', name)
        for name in (
            '0001_initial',
            '0002_room_for_updates',
            '0003_events',
            '0004_engine',
            '0005_search',
            '0006_accounts',
            '0007_boundary',
            '0008_worker_session',
            '0009_state_triggers',
            '0010_boundary_groups_and_tokens',
            '0011_worker_gone',
        )
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='ServiceAccount',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('agent', 'agent'), ('service', 'service account')], max_length=16)),
                ('slug', models.CharField(max_length=100, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._@-]*$')])),
                ('name', models.CharField(max_length=200)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('active', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('kind', 'slug'), name='service_account_once'), models.CheckConstraint(condition=models.Q(('kind__in', ['agent', 'service'])), name='service_account_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=200)),
            ],
            options={
                'permissions': [('view_payloads', 'Can see inputs, outputs and what was sent'), ('control_runs', 'Can cancel, pause and resume runs'), ('approve_actions', 'Can answer proposed actions'), ('configure', 'Can set it up')],
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('host', models.CharField(max_length=255)),
                ('pid', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('workflows', models.JSONField()),
                ('session', models.IntegerField(null=True)),
                ('server_since', models.DateTimeField(null=True)),
                ('gone_at', models.DateTimeField(null=True)),
                ('broker_away_since', models.DateTimeField(null=True)),
                ('swept_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['-seen_at'], name='worker_seen')],
            },
        ),
        migrations.CreateModel(
            name='AccessToken',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('label', models.CharField(max_length=100)),
                ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='access_tokens', to='workflows.tenant')),
                ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='access_tokens', to=settings.AUTH_USER_MODEL)),
                ('digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('person__isnull', True), ('tenant__isnull', False)), models.Q(('person__isnull', False), ('tenant__isnull', True)), _connector='OR'), name='access_token_of_one')],
            },
        ),
        migrations.CreateModel(
            name='EventSource',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('slug', models.SlugField(unique=True)),
                ('name', models.CharField(max_length=200)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sources', to='workflows.tenant')),
                ('scheme', models.CharField(choices=[('standard_webhooks', 'Standard Webhooks'), ('stripe', 'Stripe'), ('github', 'GitHub'), ('slack', 'Slack'), ('aws_sns', 'AWS SNS'), ('hmac', 'HMAC in a header'), ('bearer', 'Bearer token'), ('internal', 'Internal')], max_length=24)),
                ('settings', models.JSONField(blank=True, default=dict)),
                ('tolerance', models.DurationField(default=datetime.timedelta(seconds=300))),
                ('id_path', models.CharField(blank=True, max_length=500)),
                ('type_path', models.CharField(blank=True, max_length=500)),
                ('correlation_path', models.CharField(blank=True, max_length=500)),
                ('schemas', models.JSONField(blank=True, default=dict)),
                ('max_bytes', models.IntegerField(default=1048576, validators=[django.core.validators.MinValueValidator(1)])),
                ('per_minute', models.IntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)])),
                ('content_types', models.JSONField(default=workflows.models.event_source.json_only)),
                ('encodings', models.JSONField(blank=True, default=workflows.models.event_source.gzip_only)),
                ('retain', models.DurationField(blank=True, null=True)),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'permissions': [('send_event', 'Can send events by hand'), ('configure', 'Can set it up')],
                'constraints': [models.CheckConstraint(condition=models.Q(('scheme__in', ['standard_webhooks', 'stripe', 'github', 'slack', 'aws_sns', 'hmac', 'bearer', 'internal'])), name='event_source_scheme_known')],
            },
        ),
        migrations.CreateModel(
            name='Pause',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('workflow', models.CharField(blank=True, default='', max_length=200)),
                ('tenant', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='pauses', to='workflows.tenant')),
                ('by', models.CharField(max_length=150)),
                ('reason', models.CharField(max_length=500)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workflow', 'tenant'), name='pause_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('workflow', ''), _negated=True), ('tenant__isnull', False), _connector='OR'), name='pause_of_something')],
            },
        ),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('tenant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='policies', to='workflows.tenant')),
                ('version', models.IntegerField()),
                ('document', models.JSONField()),
                ('groups', models.JSONField(default=dict)),
                ('note', models.CharField(max_length=1000)),
                ('made_by', models.CharField(max_length=150)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'version'), name='policy_version_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('workflow', models.CharField(max_length=200)),
                ('version', models.IntegerField()),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='workflows.tenant')),
                ('input', models.JSONField()),
                ('labels', models.JSONField(default=dict)),
                ('start_key', models.CharField(blank=True, max_length=200, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('parent', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='workflows.run')),
                ('parent_step', models.CharField(blank=True, default='', max_length=63)),
                ('parent_visit', models.IntegerField(null=True)),
                ('parent_index', models.IntegerField(null=True)),
                ('state', models.CharField(default=workflows.core.states.RunState['READY'], max_length=16)),
                ('failure', models.JSONField(null=True)),
                ('ready_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('wake_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('end_seen_at', models.DateTimeField(null=True)),
                ('purge_at', models.DateTimeField(null=True)),
                ('cancel_asked_at', models.DateTimeField(null=True)),
                ('cancel_asked_by', models.CharField(blank=True, default='', max_length=150)),
                ('paused_at', models.DateTimeField(null=True)),
                ('paused_by', models.CharField(blank=True, default='', max_length=150)),
                ('hinted_at', models.DateTimeField(null=True)),
                ('lease_owner', models.UUIDField(null=True)),
                ('step', models.CharField(max_length=63)),
                ('visit', models.IntegerField(default=1)),
                ('fence', models.BigIntegerField(default=0)),
                ('attempt', models.UUIDField(null=True)),
                ('claimed_at', models.DateTimeField(null=True)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('timeout_at', models.DateTimeField(null=True)),
                ('tries', models.IntegerField(default=0)),
                ('failures', models.IntegerField(default=0)),
                ('losses', models.IntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('paused_at__isnull', True), ('state', workflows.core.states.RunState['READY'])), fields=['workflow', 'version', 'ready_at'], name='run_ready'), models.Index(condition=models.Q(('paused_at__isnull', True), ('state', workflows.core.states.RunState['READY'])), fields=['workflow', 'version', 'tenant', 'ready_at'], name='run_ready_of_tenant'), models.Index(condition=models.Q(('state', workflows.core.states.RunState['RUNNING'])), fields=['lease_owner'], name='run_lease_owner'), models.Index(condition=models.Q(('state', workflows.core.states.RunState['WAITING'])), fields=['wake_at'], name='run_wake'), models.Index(condition=models.Q(('cancel_asked_at__isnull', False), ('finished_at__isnull', True)), fields=['id'], name='run_cancelling'), models.Index(condition=models.Q(('end_seen_at__isnull', True), ('finished_at__isnull', False), ('parent__isnull', False)), fields=['parent'], name='run_end_unseen'), models.Index(condition=models.Q(('purge_at__isnull', False)), fields=['purge_at'], name='run_purge'), models.Index(fields=['tenant', '-id'], name='run_tenant_newest'), models.Index(condition=models.Q(('parent__isnull', True)), fields=['tenant', '-id'], name='run_tenant_newest_parents'), models.Index(fields=['tenant', 'state', '-id'], name='run_tenant_state_newest'), models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['workflow', 'version', 'id'], name='run_unfinished_version'), models.Index(django.db.models.functions.text.Right(django.db.models.functions.comparison.Cast('id', models.CharField()), 6), name='run_id_end'), models.Index(django.db.models.functions.comparison.Collate('start_key', 'C'), condition=models.Q(('start_key__isnull', False)), name='run_start_key'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('labels', {}), _negated=True), fields=['labels'], name='run_labels')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'workflow', 'start_key'), name='run_starts_once_per_start_key'), models.UniqueConstraint(condition=models.Q(('parent__isnull', False)), fields=('parent', 'parent_step', 'parent_visit', 'parent_index'), name='run_child_once')],
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('run', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='workflows.run')),
                ('worker', models.UUIDField()),
                ('claimed_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField()),
                ('fence', models.BigIntegerField()),
                ('visit', models.IntegerField()),
                ('number', models.IntegerField()),
                ('step', models.CharField(max_length=63)),
                ('state', models.CharField(default=workflows.core.states.AttemptState['RUNNING'], max_length=16)),
                ('error', models.TextField(blank=True, db_default='', default='')),
                ('output', models.JSONField(null=True)),
                ('output_form', models.CharField(max_length=8, null=True)),
                ('purged_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'fence'), name='attempt_fence_once'), models.UniqueConstraint(condition=models.Q(('output_form__isnull', False), ('state', workflows.core.states.AttemptState['COMMITTED'])), fields=('run', 'step', 'visit'), name='output_once_per_visit')],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('source', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='workflows.eventsource')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='workflows.tenant')),
                ('event_id', models.CharField(max_length=300, null=True)),
                ('type', models.CharField(blank=True, max_length=200)),
                ('correlation', models.CharField(blank=True, max_length=300)),
                ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('content_type', models.CharField(blank=True, max_length=100)),
                ('encoding', models.CharField(blank=True, max_length=20)),
                ('body', models.BinaryField(null=True)),
                ('state', models.CharField(default=workflows.core.states.EventState['STORED'], max_length=16)),
                ('problem', models.CharField(blank=True, max_length=500)),
                ('ambiguous_at', models.DateTimeField(null=True)),
                ('dismissed_at', models.DateTimeField(null=True)),
                ('dismissed_by', models.CharField(blank=True, max_length=150)),
                ('dismissed_reason', models.CharField(blank=True, max_length=500)),
                ('duplicates', models.IntegerField(default=0)),
                ('last_duplicate_at', models.DateTimeField(null=True)),
                ('purged_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('dismissed_at__isnull', True), ('state__in', [workflows.core.states.EventState['STORED'], workflows.core.states.EventState['LATE']])), fields=['tenant', 'correlation', 'type', 'received_at'], name='event_unconsumed'), models.Index(fields=['tenant', '-id'], name='event_tenant_newest'), models.Index(fields=['source', '-id'], name='event_source_newest'), models.Index(condition=models.Q(models.Q(('state', workflows.core.states.EventState['MATCHED']), _negated=True), ('dismissed_at__isnull', True)), fields=['tenant', '-id'], name='event_to_act_on'), models.Index(models.F('tenant'), models.Case(models.When(ambiguous_at__isnull=False, then=models.Value('ambiguous')), default=models.F('state'), output_field=models.CharField()), models.OrderBy(models.F('id'), descending=True), condition=models.Q(models.Q(('state', workflows.core.states.EventState['MATCHED']), _negated=True), ('dismissed_at__isnull', True)), name='event_kind_newest'), models.Index(condition=models.Q(models.Q(('state', workflows.core.states.EventState['MATCHED']), ('dismissed_at__isnull', False), _connector='OR'), ('purged_at__isnull', True)), fields=['source', 'id'], name='event_body_kept'), models.Index(django.db.models.functions.text.Right(django.db.models.functions.comparison.Cast('id', models.CharField()), 6), name='event_id_end'), models.Index(django.db.models.functions.comparison.Collate('event_id', 'C'), condition=models.Q(('event_id__isnull', False)), name='event_event_id'), models.Index(django.db.models.functions.comparison.Collate('correlation', 'C'), name='event_correlation')],
                'constraints': [models.UniqueConstraint(fields=('source', 'event_id'), name='event_once'), models.CheckConstraint(condition=models.Q(('state__in', ['stored', 'matched', 'late', 'rejected'])), name='event_state_known')],
            },
        ),
        migrations.CreateModel(
            name='Proposal',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('root', models.UUIDField()),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='workflows.run')),
                ('step', models.CharField(max_length=63)),
                ('visit', models.IntegerField()),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='workflows.tenant')),
                ('action', models.CharField(max_length=100)),
                ('target', models.CharField(max_length=300)),
                ('summary', models.CharField(max_length=300)),
                ('amount', models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ('currency', models.CharField(blank=True, max_length=3)),
                ('reason', models.CharField(blank=True, max_length=1000)),
                ('parameters_sealed', models.BinaryField()),
                ('parameters_digest', models.CharField(max_length=100)),
                ('proposed_by', models.CharField(max_length=200)),
                ('on_behalf_of', models.CharField(blank=True, max_length=200)),
                ('asked_by', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('state', models.CharField(default=workflows.core.proposals.ProposalState['OPEN'], max_length=16)),
                ('ended_at', models.DateTimeField(null=True)),
                ('followed_at', models.DateTimeField(null=True)),
                ('used_by', models.UUIDField(null=True)),
                ('used_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['run', '-id'], name='proposal_run'), models.Index(fields=['root', '-id'], name='proposal_root'), models.Index(condition=models.Q(('state', workflows.core.proposals.ProposalState['OPEN'])), fields=['tenant', '-id'], name='proposal_open'), models.Index(fields=['tenant', '-id'], name='proposal_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', workflows.core.proposals.ProposalState['OPEN'])), models.Q(('ended_at__isnull', False), ('state__in', ['approved', 'denied', 'sent_back', 'expired', 'cancelled'])), _connector='OR'), name='proposal_state_consistent'), models.CheckConstraint(condition=models.Q(('used_by__isnull', True), ('state', workflows.core.proposals.ProposalState['APPROVED']), _connector='OR'), name='proposal_used_only_if_approved'), models.UniqueConstraint(condition=models.Q(('state', workflows.core.proposals.ProposalState['OPEN'])), fields=('root',), name='proposal_one_open_per_root')],
            },
        ),
        migrations.CreateModel(
            name='RefusalCount',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refusals', to='workflows.eventsource')),
                ('day', models.DateField()),
                ('reason', models.CharField(max_length=24)),
                ('number', models.IntegerField(default=1)),
                ('last_at', models.DateTimeField()),
                ('note', models.CharField(blank=True, max_length=300)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('source', 'day', 'reason'), name='refusal_count_once'), models.CheckConstraint(condition=models.Q(('reason__in', ['signature', 'stale', 'size', 'encoding', 'content_type', 'rate', 'shape', 'disabled'])), name='refusal_reason_known')],
            },
        ),
        migrations.CreateModel(
            name='SourceSecret',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='secrets', to='workflows.eventsource')),
                ('label', models.CharField(max_length=100)),
                ('sealed', models.BinaryField()),
                ('valid_from', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('valid_until', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('valid_until__isnull', True), ('valid_until__gt', models.F('valid_from')), _connector='OR'), name='source_secret_ends_after_its_start')],
            },
        ),
        migrations.CreateModel(
            name='Wait',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='waits', to='workflows.run')),
                ('step', models.CharField(max_length=63)),
                ('visit', models.IntegerField()),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='waits', to='workflows.tenant')),
                ('event_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), size=None)),
                ('correlation', models.CharField(max_length=300)),
                ('deadline', models.DateTimeField(null=True)),
                ('needed', models.IntegerField(default=1)),
                ('shared', models.BooleanField(default=False)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('state', models.CharField(default=workflows.core.states.WaitState['WAITING'], max_length=16)),
                ('resolved_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['run', '-id'], name='wait_run'), models.Index(condition=models.Q(('state', workflows.core.states.WaitState['WAITING'])), fields=['tenant', 'correlation'], name='wait_open'), models.Index(fields=['tenant', 'correlation', '-id'], name='wait_correlation'), models.Index(django.db.models.functions.comparison.Collate('correlation', 'C'), name='wait_correlation_begins'), models.Index(condition=models.Q(('state', workflows.core.states.WaitState['WAITING'])), fields=['tenant', '-id'], name='wait_open_newest')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', workflows.core.states.WaitState['WAITING'])), fields=('run',), name='wait_one_open_per_run'), models.CheckConstraint(condition=models.Q(models.Q(('resolved_at__isnull', True), ('state', workflows.core.states.WaitState['WAITING'])), models.Q(('resolved_at__isnull', False), ('state__in', [workflows.core.states.WaitState['RESOLVED'], workflows.core.states.WaitState['EXPIRED'], workflows.core.states.WaitState['CANCELLED']])), _connector='OR'), name='wait_state_consistent')],
            },
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('proposal', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='answers', to='workflows.proposal')),
                ('answer', models.CharField(max_length=16)),
                ('subject', models.CharField(max_length=200)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='approvals', to=settings.AUTH_USER_MODEL)),
                ('by_name', models.CharField(max_length=200)),
                ('note', models.CharField(blank=True, max_length=2000)),
                ('digest', models.CharField(max_length=100)),
                ('event', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='workflows.event')),
                ('token', models.UUIDField(unique=True)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['proposal', 'id'], name='approval_proposal')],
                'constraints': [models.CheckConstraint(condition=models.Q(('answer__in', ['approve', 'deny', 'question', 'reply', 'withdraw'])), name='approval_answer_known')],
            },
        ),
        migrations.CreateModel(
            name='AuthorisationRecord',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='authorisations', to='workflows.tenant')),
                ('asked', models.CharField(max_length=16)),
                ('subject', models.CharField(max_length=200)),
                ('on_behalf_of', models.CharField(blank=True, max_length=200)),
                ('action', models.CharField(max_length=100)),
                ('allowed', models.BooleanField()),
                ('failed', models.CharField(blank=True, max_length=24)),
                ('reason', models.CharField(max_length=1000)),
                ('findings', models.JSONField()),
                ('policy', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='workflows.policyversion')),
                ('inputs_digest', models.CharField(max_length=100)),
                ('inputs_sealed', models.BinaryField(null=True)),
                ('decision_id', models.CharField(blank=True, max_length=200)),
                ('proposal', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='authorisations', to='workflows.proposal')),
                ('run', models.UUIDField(null=True)),
                ('step', models.CharField(blank=True, max_length=63)),
                ('operation', models.UUIDField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='authorisation_newest'), models.Index(condition=models.Q(('proposal__isnull', False)), fields=['proposal', '-id'], name='authorisation_proposal'), models.Index(condition=models.Q(('operation__isnull', False)), fields=['operation', '-id'], name='authorisation_operation')],
                'constraints': [models.CheckConstraint(condition=models.Q(('asked__in', ['proposal', 'write', 'served'])), name='authorisation_asked_known'), models.CheckConstraint(condition=models.Q(models.Q(('allowed', True), ('failed', '')), models.Q(('allowed', False), models.Q(('failed', ''), _negated=True)), _connector='OR'), name='authorisation_denied_names_check')],
            },
        ),
        migrations.CreateModel(
            name='Match',
            fields=[
                ('id', models.UUIDField(default=workflows.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('wait', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='matches', to='workflows.wait')),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='matches', to='workflows.event')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('by', models.CharField(blank=True, max_length=150)),
                ('reason', models.CharField(blank=True, max_length=1000)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('wait', 'event'), name='match_once'), models.CheckConstraint(condition=models.Q(('by', ''), models.Q(('reason', ''), _negated=True), _connector='OR'), name='match_by_hand_has_a_reason')],
            },
        ),
        migrations.RunSQL(ROOM_FOR_UPDATES, FULL_PAGES),
    ]
