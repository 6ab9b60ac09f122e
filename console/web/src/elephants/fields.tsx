// The fields of a rule that can be edited, each with its unit.
import { type Edited, FIELDS } from './change';

export function Fields({ now, onInput, isBytes }: { now: Edited; onInput: (now: Edited) => void; isBytes: boolean }) {
    return (
        <div class="limits">
            {FIELDS.filter(field => field.id !== 'bytes' || isBytes).map(field => (
                <label key={field.id} class="field" title={field.means}>
                    <span>
                        {field.name} <small>{field.unit}</small>
                    </span>
                    <input
                        inputMode="decimal"
                        autocomplete="off"
                        placeholder={field.isLimit ? 'no limit' : undefined}
                        value={now[field.id]}
                        onInput={event => onInput({ ...now, [field.id]: event.currentTarget.value })}
                    />
                </label>
            ))}
        </div>
    );
}
