// What of a rule is edited, each with its unit.
import type { Edited } from './change';

const FIELDS: readonly { id: keyof Edited; name: string; unit: string; means: string }[] = [
    {
        id: 'at_once',
        name: 'At once',
        unit: 'requests',
        means: 'How many may run at once, while no other request waits.',
    },
    {
        id: 'rate',
        name: 'Start',
        unit: 'per s',
        means: 'As many as there is room for, if it is empty.',
    },
    {
        id: 'queue',
        name: 'May wait',
        unit: 'requests',
        means: 'How many may wait; others are refused.',
    },
    {
        id: 'wait_s',
        name: 'For up to',
        unit: 's',
        means: 'Who would have to wait longer is refused at once.',
    },
    {
        id: 'bytes',
        name: 'Bytes',
        unit: 'per s',
        means: 'Of all their answers together.',
    },
];

export function Fields({ now, onInput, isBytes }: { now: Edited; onInput: (now: Edited) => void; isBytes: boolean }) {
    return (
        <div class="grants">
            {FIELDS.filter(field => field.id !== 'bytes' || isBytes).map(field => (
                <label key={field.id} class="field" title={field.means}>
                    <span>
                        {field.name} <small>{field.unit}</small>
                    </span>
                    <input
                        inputMode="decimal"
                        autocomplete="off"
                        placeholder="no limit"
                        value={now[field.id]}
                        onInput={event => onInput({ ...now, [field.id]: event.currentTarget.value })}
                    />
                </label>
            ))}
        </div>
    );
}
