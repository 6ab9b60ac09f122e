// A policy with its parameters. Each parameter is shown in words, with its key in the configuration
// as a tooltip.
import { words } from '../reason';
import type { PolicyInForce } from '../shapes';

export const Parameters = ({ of }: { of: PolicyInForce }) => (
    <span class="parameters">
        <b>{of.name}</b>
        {Object.entries(of.parameters).map(([name, value]) => (
            <span key={name} class="tag" title={name}>
                {words(name)} <code>{typeof value === 'object' ? JSON.stringify(value) : String(value)}</code>
            </span>
        ))}
    </span>
);
