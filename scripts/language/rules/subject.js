// The rule for the subject of a sentence. A sentence has a subject that the reader knows.
import { rule } from './text.js';

const BEGINNING = /^(?:who|whoever|whom|whose|whatever|what|of)\b/i;
const HEADLESS = /\b(?:to|of|by|for|from|with|on|at) who(?:ever)?\b/gi;

export default rule(function* ({ text, first }, node) {
    const noun = node.type !== 'Paragraph' && first;
    const beginning = text.match(BEGINNING);
    if (beginning && !noun && !text.endsWith('?')) {
        yield [0, `a sentence begins with "${beginning[0]}": name its subject ("you", "a client that …", "the …")`];
    }
    for (const { 0: found, index } of text.matchAll(HEADLESS)) {
        yield [index, `"${found}": write "to the client that …", "of operators who …"`];
    }
});

export const wrong = [
    'Who does not know the limit lets it be found.',
    'It waits. Of that nothing is known.',
    'A slot goes to who deserves it.',
];
export const right = ['What is a slot?', '| what |\n|---|\n| Who asks |', 'Operators who ask get it.'];
