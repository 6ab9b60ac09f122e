// Extracts the doc comments of source files as text.
import { extname } from 'node:path';

const BLOCK = { ends: /\s*\*\/.*$/, margin: /^\s*\*? ?/ };
const SCRIPT = { ...BLOCK, begins: /^\s*\/\*\* ?/, top: /^\/\/ ?/ };
const PYTHON = { begins: /^\s*[rR]?""" ?/, ends: /""".*$/, after: /^(?:#!.*)?$|:\s*(?:#.*)?$/ };
// For each language: the beginning of a line of documentation, or of a block with its end.
const LANGUAGES = {
    '.rs': { line: /^\s*\/\/[/!](?!\/) ?/ },
    '.go': { line: /^\s*\/\/ ?/, documents: /^(?:package|func|type|var|const)\b|^\t+[A-Z]/ },
    '.h': { ...BLOCK, begins: /^\s*\/\* ?/ },
    ...Object.fromEntries(['.js', '.mjs', '.ts', '.tsx', '.java'].map(name => [name, SCRIPT])),
    '.py': PYTHON,
};

// Returns the doc comments of a source file with a blank line after each, the line of the source
// for each line, and the lines of the text at which a comment begins. Lines count from 1.
export function comments(path, source) {
    const python = !extname(path) && /^#!.*python/.test(source);
    const language = python ? PYTHON : LANGUAGES[extname(path)];
    const lines = source.split('\n');
    const text = [];
    const places = [];
    const openings = new Set();
    const add = (line, at) => {
        text.push(line);
        places.push(at + 1);
    };
    const { line, begins, ends, after, top, documents } = language ?? {};

    // Takes the lines that match, from `at` on, and returns the number of the line after them.
    const run = (pattern, at) => {
        let end = at;
        while (pattern.test(lines[end] ?? '')) end += 1;
        if (end === at || (documents && !documents.test(lines[end] ?? ''))) return end;
        openings.add(text.length + 1);
        lines.slice(at, end).forEach((line, index) => add(line.replace(pattern, ''), at + index));
        add('', end);
        return end;
    };
    const block = at => {
        const margin = language.margin ?? new RegExp(`^\\s{0,${lines[at].search(/\S/)}}`);
        openings.add(text.length + 1);
        const found = [lines[at].replace(begins, '')];
        while (!ends.test(found.at(-1)) && at + found.length < lines.length) found.push(lines[at + found.length]);
        found.forEach((one, index) => add(one.replace(ends, '').replace(margin, ''), at + index));
        add('', at + found.length);
        return at + found.length;
    };

    let at = top
        ? run(
              top,
              lines.findIndex(one => !/^(?:#!|['"]use strict)/.test(one)),
          )
        : 0;
    while (language && at < lines.length) {
        if (line?.test(lines[at])) at = run(line, at);
        else if (begins?.test(lines[at]) && (!after || after.test(lines[at - 1] ?? ''))) at = block(at);
        else at += 1;
    }
    return { text: text.join('\n'), places, openings };
}
