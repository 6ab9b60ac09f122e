// The rule against words and phrases that make readers of English stop.
import { words } from './text.js';

const COMPARED = 'longer|more|less|fewer|such|worse|better|larger|smaller|faster|slower|later|different|other';

export default words([
    [/\bof late\b/gi, 'write "recently"'],
    [/\banew\b/gi, 'write "again" or "reloaded"'],
    [/\bby then\b/gi, 'write "by that time"'],
    [/\bso many\b/gi, 'write "up to N", or the number'],
    [/\bbeside\b/gi, 'write "next to"'],
    [/\bas of\b/gi, 'write "because of", "from … on" or "in version …"'],
    [
        new RegExp(`(?<!\\bthere )\\b(?:is|are|was|were|be) no (?!(?:${COMPARED})\\b)[\\w-]+`, 'gi'),
        'negate the verb: "it is not …"',
    ],
    [
        /\b(?:is|are|was|were|be|been|being) (?:told(?! apart)|said|asked)\b/gi,
        'name the component that acts: "the gateway logs"',
    ],
]);

export const wrong = [
    'It was full of late.',
    'It is no HTTP.',
    'The client is told.',
    'They were asked.',
    'Start anew.',
    'Done by then.',
];
export const right = ['There is no queue.', 'It is no longer full.', 'It is not "read anew".', 'It is `is told`.'];
