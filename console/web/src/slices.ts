// Runs long work in slices, between which the browser can draw the page and react. Also parses a
// long JSON text in steps, so that parsing can run in slices.

/** The maximum duration of a slice in ms. A frame lasts for 16 ms. */
const MOST_MS = 8;

/**
 * Runs all steps, and lets other tasks run whenever a slice is over. Resolves with the result of
 * `steps`.
 */
export async function inSlices<T>(steps: Iterator<void, T>): Promise<T> {
    for (let begun = performance.now(); ;) {
        const { done, value } = steps.next();
        if (done) return value;
        if (performance.now() - begun < MOST_MS) continue;
        await others();
        begun = performance.now();
    }
}

const waiting = new Set<() => void>();
let isWorking = false;

/**
 * Runs a job soon, in a slice, after all jobs that were queued before. The returned function
 * cancels the job if it has not run yet.
 */
export function soon(job: () => void): () => void {
    waiting.add(job);
    if (!isWorking) void work();
    return () => void waiting.delete(job);
}

async function work(): Promise<void> {
    isWorking = true;
    try {
        await others();
        await inSlices(jobs());
    } finally {
        isWorking = false;
        if (waiting.size > 0) void work();
    }
}

function* jobs(): Generator<void> {
    for (const job of waiting) {
        waiting.delete(job);
        job();
        yield;
    }
}

/**
 * Lets the waiting tasks of the browser run, and then resolves. It uses a message, which comes
 * after these tasks and has no minimum delay. A timer would delay by four milliseconds.
 */
function others(): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    return new Promise(done => {
        port1.onmessage = () => (port1.close(), done());
        port2.postMessage(null);
    });
}

/**
 * Parses a JSON object from its text, one member a step. In a list of objects, each object is one
 * step. The text must be that of an object.
 */
export function* readInSteps<T>(text: string): Generator<void, T> {
    const read: Record<string, unknown> = {};
    const inside = /[^\s,]/g;
    const next = (from: number): number => {
        inside.lastIndex = from;
        return inside.exec(text)?.index ?? text.length;
    };
    let at = next(text.indexOf('{') + 1);
    while (at < text.length && text[at] !== '}') {
        const colon = end(text, at);
        const name = JSON.parse(text.slice(at, colon)) as string;
        const value = next(text.indexOf(':', colon) + 1);
        const first = text[value] === '[' ? next(value + 1) : value;
        if (text[first] === '{' && first > value) {
            const list: unknown[] = [];
            for (at = first; at < text.length && text[at] !== ']'; at = next(at)) {
                const after = end(text, at);
                list.push(JSON.parse(text.slice(at, after)));
                at = after;
                yield;
            }
            read[name] = list;
            at += 1;
        } else {
            at = end(text, value);
            read[name] = JSON.parse(text.slice(value, at));
            yield;
        }
        at = next(at);
    }
    if (text[at] !== '}') throw new SyntaxError('The text ends before its object does.');
    return read as T;
}

/** Returns the index after the JSON value that begins at index `from`. */
function end(text: string, from: number): number {
    if (!'{["'.includes(text[from] ?? '"')) {
        const ends = /[\s,\]}]/g;
        ends.lastIndex = from;
        return ends.exec(text)?.index ?? text.length;
    }
    const marks = /["{}[\]]/g;
    marks.lastIndex = from;
    for (let depth = 0; ;) {
        const mark = marks.exec(text);
        if (!mark) return text.length;
        if (mark[0] === '"') marks.lastIndex = endOfString(text, mark.index);
        else depth += mark[0] === '{' || mark[0] === '[' ? 1 : -1;
        if (depth === 0) return marks.lastIndex;
    }
}

function endOfString(text: string, from: number): number {
    const marks = /["\\]/g;
    marks.lastIndex = from + 1;
    for (let mark = marks.exec(text); mark; mark = marks.exec(text)) {
        if (mark[0] === '"') return mark.index + 1;
        marks.lastIndex = mark.index + 2;
    }
    return text.length;
}
