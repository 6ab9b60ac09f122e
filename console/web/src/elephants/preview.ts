// Fetches the predicted effect of a rule while an operator edits it, a moment after the last key.
import { useEffect, useState } from 'preact/hooks';
import { post, Refused } from '../client';
import type { Elephant, Previewed } from '../shapes';

const DEBOUNCE = 250;

/**
 * Returns the predicted effect of the edited rule. If the operator has changed nothing, the effect
 * is that in `elephant`.
 */
export function usePreview(
    elephant: Elephant,
    change: string,
): { value: Previewed | undefined; problem: Refused | undefined } {
    const [asked, setAsked] = useState<{ change: string; value?: Previewed; problem?: Refused }>();
    const isUsual = change === '{}';
    useEffect(() => {
        if (isUsual) return;
        const stop = new AbortController();
        const timer = setTimeout(() => {
            post(
                '/v1/elephants/{number}/preview',
                { number: elephant.number },
                { change: JSON.parse(change) },
                stop.signal,
            )
                .then(value => setAsked({ change, value }))
                .catch(
                    (problem: unknown) =>
                        stop.signal.aborted || (problem instanceof Refused && setAsked({ change, problem })),
                );
        }, DEBOUNCE);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [change, elephant.number, elephant.revision]);
    if (isUsual && elephant.proposed)
        return {
            value: {
                limits: elephant.proposed,
                effect: elephant.effect ?? null,
                unpredicted: elephant.unpredicted ?? null,
            },
            problem: undefined,
        };
    return { value: asked?.value, problem: asked?.change === change ? asked.problem : undefined };
}
