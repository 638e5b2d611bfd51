import type { Play } from '../support/stage.js';
import { vi } from 'vitest';

const PATH = 'tinker://run-1/weights/0001';
const MORNING = new Date('2026-07-13T08:00:00Z');

export const rest: Readonly<Record<string, Play>> = {
  rest: async (stage) => {
    const client = stage.rest();
    const accessible = { accessScope: 'accessible' } as const;
    const page = { limit: 5, offset: 10 };
    const calls: Readonly<Record<string, () => PromiseLike<unknown>>> = {
      get_training_run: () => client.getTrainingRun('run-1'),
      'get_training_run accessible': () => client.getTrainingRun('run-1', accessible),
      get_training_run_by_tinker_path: () => client.getTrainingRunByTinkerPath(PATH, accessible),
      get_weights_info_by_tinker_path: () => client.getWeightsInfoByTinkerPath(PATH),
      list_training_runs: () => client.listTrainingRuns(),
      'list_training_runs all': () => client.listTrainingRuns({ ...page, ...accessible, projectId: 'project-1' }),
      list_checkpoints: () => client.listCheckpoints('run-1'),
      get_external_weights_urls: () => client.getExternalWeightsUrls('tinker://run-1/external_weights/hf'),
      delete_checkpoint: () => client.deleteCheckpoint('run-1', 'weights/0001'),
      delete_checkpoint_from_tinker_path: () =>
        client.deleteCheckpointFromTinkerPath('tinker://run-1/sampler_weights/a b'),
      publish_checkpoint_from_tinker_path: () => client.publishCheckpointFromTinkerPath(PATH),
      unpublish_checkpoint_from_tinker_path: () => client.unpublishCheckpointFromTinkerPath(PATH),
      set_checkpoint_ttl_from_tinker_path: () => client.setCheckpointTtlFromTinkerPath(PATH, 86400),
      'set_checkpoint_ttl_from_tinker_path none': () => client.setCheckpointTtlFromTinkerPath(PATH, null),
      list_user_checkpoints: () => client.listUserCheckpoints(),
      'list_user_checkpoints all': () => client.listUserCheckpoints(page),
      get_session: () => client.getSession('session-1'),
      'get_session accessible': () => client.getSession('session-1', accessible),
      list_sessions: () => client.listSessions(),
      'list_sessions all': () => client.listSessions({ ...page, ...accessible }),
      assign_session_project: () => client.assignSessionProject('session-1', 'project-1'),
      get_sampler: () => client.getSampler('session-1:sample:0'),
    };
    for (const [call, run] of Object.entries(calls)) await stage.result(call, run());
  },
  'rest-trace': async (stage) => {
    vi.useFakeTimers();
    try {
      const client = stage.rest();
      const ready = stage.result('export_session_trace', client.exportSessionTrace('session-1'));
      await vi.advanceTimersByTimeAsync(6000);
      await ready;
      await stage.result('export_session_trace failed', client.exportSessionTrace('session-2'));
    } finally {
      vi.useRealTimers();
    }
  },
  'rest-search': async (stage) => {
    const client = stage.rest();
    await stage.result('search_sessions', client.searchSessions());
    const every = client.searchSessions({
      sessionId: 'session-1',
      projectIds: ['project-1'],
      userMetadata: { purpose: 'parity' },
      displayName: 'nightly',
      owner: { type: 'user', ownerUrns: ['tml:user:1'] },
      statuses: [
        { type: 'active' },
        { type: 'cancelled' },
        { type: 'failed' },
        { type: 'client_finished' },
        { type: 'client_finished', reasons: ['errored', 'interrupted'] },
      ],
      limit: 10,
      cursor: { lastCreatedAt: '2026-07-13T08:00:00Z', lastSessionId: 'session-9' },
    });
    await stage.result('search_sessions every', every);
    await stage.result('search_sessions accessible', client.searchSessions({ owner: { type: 'accessible' } }));
  },
  admin: async (stage) => {
    const client = stage.admin();
    const text = { startingOn: '2026-07-13T08:00:00Z', endingBefore: '2026-07-14T08:00:00Z' };
    const values = { startingOn: MORNING, endingBefore: new Date('2026-07-14T08:00:00Z') };
    await stage.result('get_audit_log', client.getAuditLog());
    await stage.result('get_audit_log all', client.getAuditLog({ eventType: 'checkpoints', day: '2026-07-13' }));
    await stage.result('get_billing_usage text', client.getBillingUsage(text));
    await stage.result('get_billing_usage values', client.getBillingUsage(values));
    await stage.result('get_current_checkpoint_storage_usage', client.getCurrentCheckpointStorageUsage());
    await stage.result(
      'get_current_checkpoint_storage_usage project',
      client.getCurrentCheckpointStorageUsage({ projectId: 'project-1' }),
    );
  },
};
