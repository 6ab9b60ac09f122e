// The gateway's state, second by second, for as long as the console is open. This module reads
// /v1/events and keeps the last 15 minutes. After a broken connection, it resumes where the stream
// stopped. Views are redrawn at most once a second, and not at all while the page is hidden.
import { ask, closed, Refused } from './client';
import { EventReader, type ServerEvent } from './events';
import { token } from './operator';
import { Rows } from './rows';
import type { Columns, Revisions } from './shapes';
import { Signal } from './signal';
import { inSlices, readInSteps } from './slices';

export interface Connection {
    state: 'connecting' | 'connected' | 'reconnecting';
    since: number;
    why: string;
}

export const rows = new Rows();
/** A number that changes whenever there are new rows to draw. */
export const tick = new Signal(0);
/** The revisions of parts of the gateway's state; undefined before the first event. */
export const revisions = new Signal<Revisions | undefined>(undefined);
export const connection = new Signal<Connection>({ state: 'connecting', since: Date.now(), why: '' });
/**
 * The time of the last event, by this browser's clock, in ms since 1970. The page counts as stale
 * `STALE` ms later.
 */
export const heard = new Signal(0);
/** Whether the last event is too old. */
export const isStale = new Signal(false);

/**
 * Returns the approximate time of the gateway's clock, in ms since 1970. The times of the API refer
 * to that clock, and a browser's clock may differ from it.
 */
export const gatewayNow = (): number => rows.gauge('at_ms').at(-1) ?? Date.now();

const STALE = 5000;
const SHORTEST = 1000;
const LONGEST = 15_000;

let lastId = '';
let isBegun = false;

export function begin(): void {
    if (isBegun) return;
    isBegun = true;
    void follow();
    setInterval(() => isStale.set(heard.value > 0 && Date.now() - heard.value > STALE), 1000);
    document.addEventListener('visibilitychange', wake);
}

async function follow(): Promise<never> {
    for (let pause = SHORTEST; ;) {
        const begun = Date.now();
        const why = await listen().catch((error: unknown) =>
            error instanceof Refused ? error.message : 'The connection to the gateway broke.',
        );
        if (heard.value >= begun) pause = SHORTEST;
        if (connection.value.state !== 'reconnecting')
            connection.set({
                state: 'reconnecting',
                since: Date.now(),
                why: why ?? 'The gateway closed the event stream.',
            });
        await rest(pause);
        pause = Math.min(LONGEST, pause * 2);
    }
}

/** Reads the stream of events until it ends. */
async function listen(): Promise<undefined> {
    if (closed.value) throw closed.value;
    const stop = new AbortController();
    const unwatch = token.watch(() => stop.abort());
    let sign = Date.now();
    // A silent connection may have ended without notice.
    const quiet = setInterval(() => Date.now() - sign > 3 * STALE && stop.abort(), STALE);
    try {
        const headers: Record<string, string> = { Accept: 'text/event-stream' };
        if (lastId) headers['Last-Event-ID'] = lastId;
        const answer = await ask('/v1/events', { headers, signal: stop.signal });
        if (!answer.body) throw new Refused(0, 'unreachable', 'The gateway sent no event stream.');
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        const events = new EventReader(lastId);
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return undefined;
            sign = Date.now();
            for (const event of events.read(value)) await take(event);
        }
    } finally {
        clearInterval(quiet);
        unwatch();
    }
}

async function take(event: ServerEvent): Promise<void> {
    if (event.name === 'changed') revisions.set(JSON.parse(event.text) as Revisions);
    else if (event.name === 'anew') await inSlices(renewed(event.text));
    else if (event.name === 'seconds') rows.append(JSON.parse(event.text) as Columns);
    else return;
    lastId = event.id;
    heard.set(Date.now());
    isStale.set(false);
    if (connection.value.state !== 'connected') connection.set({ state: 'connected', since: Date.now(), why: '' });
    wake();
}

function* renewed(text: string): Generator<void> {
    yield* rows.renewing(yield* readInSteps<Columns>(text));
}

function wake(): void {
    if (!document.hidden) tick.set(rows.version);
}

/** Waits for `ms` milliseconds, or until an operator logs in with a valid token. */
const rest = (ms: number): Promise<void> =>
    new Promise(done => {
        const ends = (): void => {
            clearTimeout(timer);
            stop();
            done();
        };
        const stop = closed.watch(now => now ?? ends());
        const timer = setTimeout(ends, ms);
    });
