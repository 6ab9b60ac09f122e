// A policy with its parameters, as the catalogue names them.
import type { PolicyInForce } from '../shapes';

export const Parameters = ({ of }: { of: PolicyInForce }) => (
    <span class="parameters">
        <b>{of.name}</b>
        {Object.entries(of.parameters).map(([name, value]) => (
            <span key={name} class="tag">
                {name} <code>{typeof value === 'object' ? JSON.stringify(value) : String(value)}</code>
            </span>
        ))}
    </span>
);
