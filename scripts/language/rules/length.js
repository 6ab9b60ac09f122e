// The rule for the length of sentences: at most 40 words each, and at most 25 words on average on a
// page.
import { sentences } from './text.js';

const MOST = 40;
const AVERAGE = 25;

export default ({ Syntax, report, locator, RuleError }, { page }) => {
    const lengths = [];
    const visit = node => {
        for (const { text, at } of sentences(node)) {
            const length = text.split(/\s+/).filter(word => /\w/.test(word)).length;
            if (node.type === Syntax.Paragraph) lengths.push(length);
            if (length <= MOST) continue;
            const message = `a sentence has ${length} words, at most ${MOST} are allowed: make two of it, or a list`;
            report(node, new RuleError(message, { padding: locator.at(at[0] - node.range[0]) }));
        }
    };
    return {
        [Syntax.Paragraph]: visit,
        [Syntax.TableCell]: visit,
        [Syntax.DocumentExit](node) {
            const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
            if (!page || !(mean > AVERAGE)) return;
            report(
                node,
                new RuleError(`sentences have ${mean.toFixed(1)} words on average, at most ${AVERAGE} are allowed`),
            );
        },
    };
};

export const wrong = [`It ${'waits and '.repeat(20)}runs.`, `It ${'waits and '.repeat(12)}runs. `.repeat(3)];
export const right = [`It ${'waits and '.repeat(12)}runs. It ends.`];
