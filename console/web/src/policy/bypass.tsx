// The button that makes the gateway a plain proxy, and the button that ends this.
import { useState } from 'preact/hooks';
import { mayNotDecide, token } from '../operator';
import type { Policy } from '../shapes';
import { use } from '../signal';
import { BypassDialog } from './dialogs';

export function Bypass({ policy, reload }: { policy: Policy; reload: () => Promise<void> }) {
    const [isOpen, setOpen] = useState(false);
    const why = mayNotDecide(use(token));
    return (
        <>
            <button
                type="button"
                class={policy.bypassed ? 'main' : ''}
                disabled={why !== undefined}
                title={why ?? 'The gateway makes no decisions for a while.'}
                onClick={() => setOpen(true)}
            >
                {policy.bypassed ? 'End the bypass…' : 'Bypass…'}
            </button>
            {isOpen && <BypassDialog {...{ policy, reload }} onClose={() => setOpen(false)} />}
        </>
    );
}
