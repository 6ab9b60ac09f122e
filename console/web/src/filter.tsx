// A field that filters a table. The key `/` moves to it.
import type { ComponentChildren } from 'preact';

export function Filter({
    label,
    value,
    onInput,
    children,
}: {
    label: string;
    value: string;
    onInput: (text: string) => void;
    children?: ComponentChildren;
}) {
    return (
        <div class="row">
            {children && <span class="why">{children}</span>}
            <input
                type="search"
                aria-label={label}
                placeholder={`${label} ( / )`}
                value={value}
                onInput={event => onInput(event.currentTarget.value)}
            />
        </div>
    );
}
