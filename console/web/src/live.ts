// What the gateway tells second by second, for as long as the console is open: reads /v1/events, keeps the last quarter
// of an hour, and comes back by itself where it left off. Views are woken once a second at most, and not at all while
// nobody sees the page.
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
/** Another number when there are rows to draw. */
export const tick = new Signal(0);
export const revisions = new Signal<Revisions | undefined>(undefined);
export const connection = new Signal<Connection>({ state: 'connecting', since: Date.now(), why: '' });
/** When rows came last, by this browser's clock; nothing is fresh for longer than `STALE`. */
export const heard = new Signal(0);
export const isStale = new Signal(false);

/** What the gateway's clock shows, about: moments of the API are by that, and a browser's may be another. */
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
            error instanceof Refused ? error.message : 'The stream broke off.',
        );
        if (heard.value >= begun) pause = SHORTEST;
        if (connection.value.state !== 'reconnecting')
            connection.set({ state: 'reconnecting', since: Date.now(), why: why ?? 'The gateway ended the stream.' });
        await rest(pause);
        pause = Math.min(LONGEST, pause * 2);
    }
}

/** Until the stream ends. */
async function listen(): Promise<undefined> {
    if (closed.value) throw closed.value;
    const stop = new AbortController();
    const unwatch = token.watch(() => stop.abort());
    let sign = Date.now();
    // A connection that says nothing may be one that nobody told of its end.
    const quiet = setInterval(() => Date.now() - sign > 3 * STALE && stop.abort(), STALE);
    try {
        const headers: Record<string, string> = { Accept: 'text/event-stream' };
        if (lastId) headers['Last-Event-ID'] = lastId;
        const answer = await ask('/v1/events', { headers, signal: stop.signal });
        if (!answer.body) throw new Refused(0, 'unreachable', 'The gateway sends no events.');
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

/** For so long, or until somebody has shown a good token. */
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
