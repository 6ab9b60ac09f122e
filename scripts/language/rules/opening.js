// The rule for the first word of a doc comment. The comment begins with a verb or a noun, and does
// not continue the name of its item.
import { rule } from './text.js';

const OPENING = new RegExp(
    '^(?:it|its|they|their|this|that|these|those|he|she|her|his|everything|nothing|something|anything|everyone|' +
        'nobody|who|whom|whose|what|where|which|of|for|with|without|in|by|to|on|at|from|as|so|than|until|not)\\b(?!:)',
    'i',
);

export default rule(function* ({ text, first }, node, { openings }) {
    if (first && openings?.has(node.loc.start.line) && OPENING.test(text)) {
        yield [0, `a doc comment begins with "${text.match(OPENING)[0]}": write what the item does or is`];
    }
});

export const path = 'src/sample.rs';
export const wrong = ['Its time.', 'To whom the slot belongs.', 'Nothing is known yet.'];
export const right = ['Whether it waits.', 'Returns the slot.\n\nIt waits.'];
