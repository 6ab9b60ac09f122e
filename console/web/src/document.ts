// A document of the API on a page: asked for when the page comes, again when its revision is another or its time has
// come, and never while nobody sees the page. What was read last is shown at once when one comes back.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { address, closed, get, type Getter, Refused } from './client';
import { use } from './signal';

export interface Document<T> {
    value: T | undefined;
    problem: Refused | undefined;
    /** When it was read, by this browser's clock. */
    at: number;
    reload: () => Promise<void>;
}

const MOST_KEPT = 64;
const kept = new Map<string, { value: unknown; at: number }>();

interface Wanted {
    filled?: Record<string, string | number>;
    query?: Record<string, string | undefined>;
    /** Whatever it depends on: it is read again when that is another. */
    revision?: number | string | undefined;
    /** In milliseconds. */
    every?: number | undefined;
    /** Not yet. */
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
            try {
                remember(at, await get(path, filled, query, signal));
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
        const ask = (): void => void (document.hidden || reload(stop.signal));
        ask();
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

function remember(at: string, value: unknown): void {
    kept.delete(at);
    kept.set(at, { value, at: Date.now() });
    const [oldest] = kept.keys();
    if (kept.size > MOST_KEPT && oldest !== undefined) kept.delete(oldest);
}
