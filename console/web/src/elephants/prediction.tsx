// What is predicted of a rule: of the resource, what these requests used of late and can use at most under it.
import { percent, perSecond } from '../format';
import type { Effect, Elephant } from '../shapes';

/** Of the time; places that are so busy make whoever comes wait. */
const MUCH = 0.5;

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
    // A rule makes nobody use more.
    const most = Math.min(effect.elephants_now, effect.elephants_most);
    const use = `These requests used ${percent(effect.elephants_now)} of ${found.resource} of late, and ${percent(most)} at most under the rule`;
    const busy = effect.elephants_most > 0 ? effect.elephants_now / effect.elephants_most : 0;
    const text =
        effect.held_back > 0
            ? `${use}; ${perSecond(effect.held_back)} of ${perSecond(found.rate)} would wait longer or be refused.`
            : busy > MUCH
              ? `${use}. What the rule allows would be in use ${percent(busy)} of the time, so many of them would wait, and some for too long.`
              : `${use}: it would hold hardly any back.`;
    if (isShort) return <p>{text}</p>;
    return (
        <div class="prediction">
            <Bar name="of late" of={effect.elephants_now} />
            <Bar name="under the rule" of={most} />
            <p class="why">{text}</p>
        </div>
    );
}

const Bar = ({ name, of }: { name: string; of: number }) => (
    <div class="predicted">
        <span>{name}</span>
        <span class="bar-of" aria-hidden="true">
            <span class={name === 'of late' ? 'before' : ''} style={{ width: `${Math.min(100, of * 100)}%` }} />
        </span>
        <b>
            {name === 'of late' ? '' : '≤ '}
            {percent(of)}
        </b>
    </div>
);
