// The reasons of decisions in words. The identifier, which log, metrics and header fields have, is
// shown as a tooltip. The type check compares the list with the document of the API. The reasons of
// a newer gateway, which are missing here, are shown too.
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
