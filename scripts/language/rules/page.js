// The rule for the beginning of a page. A page says first for whom it is, and what the reader can
// do after reading it.
export default ({ Syntax, report, getSource, RuleError }, { guide }) => ({
    [Syntax.Document](node) {
        const first = node.children.find(child => child.type === Syntax.Paragraph);
        if (!guide || (first && /\bis for\b[^]*\.\s+After it\b/.test(getSource(first)))) return;
        report(first ?? node, new RuleError('a page begins with "This page is for …. After it, you can …"'));
    },
});

export const path = 'docs/how-to/sample.md';
export const wrong = ['# Title\n\nText.'];
export const right = ['# Title\n\nThis page is for operators. After it, you can read it.'];
