// Fetches a document of the API for a page. A document is fetched when the page opens, and again
// when its revision changes or its interval has passed. Nothing is fetched while the page is
// hidden. A fetch for an interval begins only when the previous fetch has ended. When a page is
// opened again, the last value of the document is shown at once.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { address, closed, get, type Getter, Refused } from './client';
import { use } from './signal';

export interface Document<T> {
    value: T | undefined;
    problem: Refused | undefined;
    /** The time of the last fetch, by this browser's clock, in ms since 1970. */
    at: number;
    reload: () => Promise<void>;
}

const MOST_KEPT = 64;
const kept = new Map<string, { value: unknown; at: number; number: number }>();
/**
 * The number of fetches that have begun. A fetch gets the next number when it begins, so a larger
 * number means a later fetch.
 */
let fetches = 0;

interface Wanted {
    filled?: Record<string, string | number>;
    query?: Record<string, string | undefined>;
    /**
     * The values that the document depends on, joined into one. When this value changes, the
     * document is fetched again.
     */
    revision?: number | string | undefined;
    /**
     * The interval between two fetches, in milliseconds. Absent if the document is not fetched
     * periodically.
     */
    every?: number | undefined;
    /** Whether the document must not be fetched yet. */
    skip?: boolean;
}

type Read<P extends Getter> = Awaited<ReturnType<typeof get<P>>>;

export function useDocument<P extends Getter>(
    path: P,
    { filled, query, revision, every, skip }: Wanted = {},
): Document<Read<P>> {
    const at = address(path, filled, query);
    const [, again] = useState(0);
    const problem = useRef<Refused | undefined>(undefined);
    const shut = use(closed);
    const reload = useCallback(
        async (signal?: AbortSignal) => {
            const number = ++fetches;
            try {
                remember(at, await get(path, filled, query, signal), number);
                problem.current = undefined;
            } catch (error) {
                if (signal?.aborted) return;
                problem.current = error instanceof Refused ? error : new Refused(0, 'unreachable', String(error));
            }
            again(count => count + 1);
        },
        [at],
    );
    useEffect(() => {
        if (skip || shut) return;
        const stop = new AbortController();
        let isAsking = false;
        const ask = async (): Promise<void> => {
            if (document.hidden || isAsking) return;
            isAsking = true;
            try {
                await reload(stop.signal);
            } finally {
                isAsking = false;
            }
        };
        void ask();
        const timer = every === undefined ? undefined : setInterval(ask, every);
        document.addEventListener('visibilitychange', ask);
        return () => {
            stop.abort();
            clearInterval(timer);
            document.removeEventListener('visibilitychange', ask);
        };
    }, [at, revision, every, skip, shut, reload]);
    const found = kept.get(at);
    return {
        value: found?.value as Read<P> | undefined,
        problem: problem.current,
        at: found?.at ?? 0,
        reload: () => reload(),
    };
}

/** Stores the value of the fetch `number`, unless the value of a later fetch is stored already. */
function remember(at: string, value: unknown, number: number): void {
    if ((kept.get(at)?.number ?? 0) > number) return;
    kept.delete(at);
    kept.set(at, { value, at: Date.now(), number });
    const [oldest] = kept.keys();
    if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}
