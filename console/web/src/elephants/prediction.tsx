// The predicted effect of a rule: how much of the resource these requests used recently, and how
// much they can use under the rule at most.
import { percent } from '../format';
import type { Elephant, Previewed } from '../shapes';
import { mostOf, predictedText } from './predicted';

export function Prediction({
    elephant: { found },
    preview,
    isShort,
}: {
    elephant: Elephant;
    preview: Previewed | undefined;
    isShort?: boolean;
}) {
    if (preview?.unpredicted) return <p class="note">Prediction: {preview.unpredicted}.</p>;
    const effect = preview?.effect;
    if (!effect || !found) return null;
    const text = predictedText(found, effect, preview.limits);
    if (isShort) return <p>{text}</p>;
    return (
        <div class="prediction">
            <Bar name="recently" of={effect.elephants_now} />
            <Bar name="under the rule" of={mostOf(effect)} />
            <p class="why">{text}</p>
        </div>
    );
}

const Bar = ({ name, of }: { name: string; of: number }) => (
    <div class="predicted">
        <span>{name}</span>
        <span class="bar-of" aria-hidden="true">
            <span class={name === 'recently' ? 'before' : ''} style={{ width: `${Math.min(100, of * 100)}%` }} />
        </span>
        <b>
            {name === 'recently' ? '' : '≤ '}
            {percent(of)}
        </b>
    </div>
);
