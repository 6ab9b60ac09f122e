// Sentences of a Markdown document, and rules that look at one sentence at a time.

const ABBREVIATION = /\b(?:e\.g|i\.e|cf|vs|etc|approx|No|Fig|al)$/;
const END = /[.!?]["»”')*]*\s+/g;
const QUOTATION = /"[^"]{1,300}"|«[^»]*»|“[^”]*”/g;
const cache = new WeakMap();

function* leaves(node) {
    if (!node.children) yield node;
    else for (const child of node.children) yield* leaves(child);
}

// Returns the text of a node without its markup, and the offset of each character in the source.
// Code, addresses and quotations consist of X.
function plain(node) {
    let text = '';
    const at = [];
    for (const leaf of leaves(node)) {
        if (!['Str', 'Code', 'Break'].includes(leaf.type)) continue;
        const code = leaf.type === 'Code' || /^https?:/.test(leaf.raw);
        [...leaf.raw.matchAll(code ? /[^]/g : /[^[\]]/g)].forEach(({ 0: char, index }) => {
            const one = code ? 'X' : char.replace(/\s/, ' ');
            if (one === ' ' && text.endsWith(' ')) return;
            text += one;
            at.push(leaf.range[0] + index);
        });
    }
    return { text: text.replace(QUOTATION, quoted => quoted.replace(/[^\s"«»“”]/g, 'X')), at };
}

// Returns the sentences of a node: text, offsets, and whether it is the node's first.
export function sentences(node) {
    if (cache.has(node)) return cache.get(node);
    const { text, at } = plain(node);
    const found = [];
    let from = 0;
    for (const match of [...text.matchAll(END), { index: text.length, 0: '' }]) {
        if (ABBREVIATION.test(text.slice(from, match.index))) continue;
        const to = match.index + match[0].length;
        const skip = text.slice(from, to).search(/\S/);
        if (skip >= 0)
            found.push({
                text: text.slice(from + skip, to).trimEnd(),
                at: at.slice(from + skip, to),
                first: !found.length,
            });
        from = to;
    }
    cache.set(node, found);
    return found;
}

// Makes a textlint rule of `check(sentence, node, options)`, which yields pairs: an offset in the
// sentence, and what to write instead.
export function rule(check) {
    return ({ Syntax, report, locator, RuleError }, options) => {
        const visit = node => {
            for (const sentence of sentences(node)) {
                for (const [offset, message] of check(sentence, node, options)) {
                    report(node, new RuleError(message, { padding: locator.at(sentence.at[offset] - node.range[0]) }));
                }
            }
        };
        return { [Syntax.Paragraph]: visit, [Syntax.Header]: visit, [Syntax.TableCell]: visit };
    };
}

// Makes a rule of a list of patterns, each with what to write instead.
export function words(list) {
    return rule(function* ({ text }, _, options) {
        for (const [pattern, message] of list) {
            for (const { 0: found, index } of text.matchAll(pattern)) {
                if (!options.allowed?.test(found)) yield [index, `"${found}": ${message}`];
            }
        }
    });
}
