// What is predicted of a rule: of the resource, what these requests use now and at most under it.
import { percent, perSecond } from '../format';
import type { Effect, Elephant } from '../shapes';

export function Prediction({
    elephant,
    effect,
    unpredicted,
    isShort,
}: {
    elephant: Elephant;
    effect: Effect | undefined;
    unpredicted: string | undefined;
    isShort?: boolean;
}) {
    const found = elephant.found;
    if (unpredicted) return <p class="note">Predicted: {unpredicted}.</p>;
    if (!effect || !found) return null;
    const use = `These requests use ${percent(effect.elephants_now)} of ${found.resource} now, and at most ${percent(effect.elephants_most)} under the rule`;
    const text =
        effect.held_back > 0
            ? `${use}; ${perSecond(effect.held_back)} of ${perSecond(found.rate)} would wait longer or be refused, at the present rate.`
            : `${use}: at the present rate it would hold nothing back.`;
    if (isShort) return <p>{text}</p>;
    return (
        <div class="prediction">
            <Bar name="now" of={effect.elephants_now} />
            <Bar name="under the rule" of={effect.elephants_most} />
            <p class="why">{text}</p>
        </div>
    );
}

const Bar = ({ name, of }: { name: string; of: number }) => (
    <div class="predicted">
        <span>{name}</span>
        <span class="bar-of" aria-hidden="true">
            <span class={name === 'now' ? 'before' : ''} style={{ width: `${Math.min(100, of * 100)}%` }} />
        </span>
        <b>
            {name === 'now' ? '' : '≤ '}
            {percent(of)}
        </b>
    </div>
);
