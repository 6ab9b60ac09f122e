// The rule against everyday nouns that a text uses as technical terms.
import { words } from './text.js';

export default words([
    [
        /\b(?:books?|desks?|guests?|wish(?:es)?|doors?|voices?|halls?|houses?)\b(?! style)/gi,
        'use the term of the field',
    ],
    [
        /(?<!\b(?:make|makes|made|making|leave|leaves|left) )\brooms?\b(?! for)/gi,
        'write "space", "capacity" or what is meant',
    ],
    [/(?<!\blast )\bnights?\b/gi, 'write "log" or "run"'],
    [/\bwalls?\b(?!.clock)/gi, 'write "wall clock" or what is meant'],
]);

export const wrong = [
    'The desk serves the guest.',
    'Open a door.',
    'The wall says so.',
    'There is room in it.',
    'It plays the night.',
];
export const right = ['The wall clock goes.', 'A `Book` makes room.'];
