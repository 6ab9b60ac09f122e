// The dialog of a decision. Its top describes the change. The author, the reason and the duration
// are stored with the decision for as long as it is in force. If the gateway refuses the decision,
// the fields keep their text.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Refused } from './client';
import { Dialog } from './dialog';
import { name, takeName, token } from './operator';
import { Problem } from './problem';
import { use } from './signal';

/**
 * The fields of a decision that are sent to the gateway. `by` is left out if the operator has a
 * token, which names the author.
 */
export interface DecisionMeta {
    why: string;
    by?: string;
    for?: string;
}

interface Properties {
    title: string;
    /** A description of the change, and of how to undo it. */
    children: ComponentChildren;
    /** The suggested reasons for the decision. */
    whys: readonly string[];
    /** The durations on offer. Absent for an undo, which has no duration. */
    spans?: readonly string[];
    /** The label of the button that sends the decision. */
    verb: string;
    act: (meta: DecisionMeta) => Promise<void>;
    onClose: () => void;
    /**
     * A function that is called when another operator has decided while the dialog was open.
     * `conflict` then shows that decision.
     */
    onConflict?: () => Promise<void>;
    conflict?: ComponentChildren;
}

export function Decide({ title, children, whys, spans, verb, act, onClose, onConflict, conflict }: Properties) {
    const known = use(token);
    const [by, setBy] = useState(name.value);
    const [why, setWhy] = useState('');
    const [span, setSpan] = useState(spans?.includes('1h') ? '1h' : (spans?.[0] ?? ''));
    const [isBusy, setBusy] = useState(false);
    const [refused, setRefused] = useState<Refused>();
    const decide = async (event: Event): Promise<void> => {
        event.preventDefault();
        if (isBusy) return;
        setBusy(true);
        setRefused(undefined);
        if (!known) takeName(by);
        try {
            await act({ why, ...(known ? {} : { by }), ...(spans ? { for: span } : {}) });
            onClose();
        } catch (error) {
            setRefused(error instanceof Refused ? error : new Refused(0, 'unreachable', String(error)));
            if (error instanceof Refused && error.code === 'conflict') await onConflict?.();
            setBusy(false);
        }
    };
    return (
        <Dialog title={title} onClose={onClose}>
            <form onSubmit={event => void decide(event)}>
                <div class="changes">{children}</div>
                {!known && (
                    <label class="field">
                        Your name
                        <input
                            required
                            maxLength={200}
                            value={by}
                            onInput={event => setBy(event.currentTarget.value)}
                            autocomplete="name"
                        />
                    </label>
                )}
                <label class="field">
                    <span>
                        Reason <small>required; other operators read it</small>
                    </span>
                    <input
                        autofocus
                        required
                        maxLength={200}
                        value={why}
                        onInput={event => setWhy(event.currentTarget.value)}
                        placeholder="in your own words, or one of these"
                    />
                </label>
                <div class="row suggestions" role="group" aria-label="Suggested reasons">
                    {whys.map(text => (
                        <button
                            key={text}
                            type="button"
                            class="suggestion"
                            aria-pressed={why === text}
                            onClick={() => setWhy(text)}
                        >
                            {text}
                        </button>
                    ))}
                </div>
                {spans && spans.length > 1 && (
                    <label class="field">
                        Duration
                        <select value={span} onChange={event => setSpan(event.currentTarget.value)}>
                            {spans.map(span => (
                                <option key={span}>{span}</option>
                            ))}
                        </select>
                    </label>
                )}
                <Problem of={refused} />
                {refused?.code === 'conflict' && conflict}
                <footer class="row end">
                    <button type="button" onClick={onClose}>
                        Cancel
                    </button>
                    <button type="submit" class="main" disabled={isBusy}>
                        {isBusy ? '…' : refused?.code === 'conflict' ? `${verb} anyway` : verb}
                    </button>
                </footer>
            </form>
        </Dialog>
    );
}

/**
 * Returns the revision that the operator has seen. It is the revision from when the dialog opened,
 * although the page behind the dialog is updated. After a call of `tell`, which reports that the
 * operator has seen a newer revision, it is the present one.
 */
export function useSeen(revision: number | undefined): { revision: number | undefined; tell: () => void } {
    const [first] = useState(revision);
    const [isTold, setTold] = useState(false);
    return { revision: isTold ? revision : first, tell: () => setTold(true) };
}

export const SPANS = ['10m', '1h', '4h', '24h'] as const;
