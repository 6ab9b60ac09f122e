// The reasons of decisions in words. The identifier of a reason, which logs, metrics and header
// fields have, is shown as a tooltip. The type check compares this list with the document of the
// API. A reason that only a newer gateway has is missing here, and is shown by its identifier.
import type { Reason } from './shapes';
import { visible } from './visible';

const TEXT: Record<Reason, string> = {
    slot_free: 'slot free',
    best: 'best of those waiting',
    floor_share: 'floor share',
    after_others: 'no other request waited',
    queue_full: 'queue full',
    evicted: 'evicted from the queue',
    set_back: 'ranked behind others',
    principal_cap: 'principal cap reached',
    waited_too_long: 'waited too long',
    reconfigured: 'new configuration',
    throttled: 'throttled by a rule',
    client_left: 'client left',
    ran_too_long: 'ran too long',
    preempted: 'preempted',
    slow_client: 'slow client',
    memory_full: 'memory full',
};

export const REASONS: readonly string[] = Object.keys(TEXT);

/** Returns an identifier such as `in_progress` as words. */
export const words = (identifier: string): string => identifier.replaceAll('_', ' ');

export const reasonText = (name: string): string => (TEXT as Partial<Record<string, string>>)[name] ?? words(name);

export const ReasonOf = ({ name }: { name: string | null | undefined }) =>
    name == null ? <>–</> : <span title={visible(name)}>{visible(reasonText(name))}</span>;
