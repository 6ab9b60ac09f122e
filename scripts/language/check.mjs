// Checks the language of the repository's texts: see scripts/check-language.
import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { comments } from './comments.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = join(HERE, '../..');
const LIMITS = join(HERE, 'limits.json');
const TEXTS = /\.(?:md|rs|go|py|js|mjs|ts|tsx|java|h)$|^[^.]+$/;
const GUIDE = /^docs\/(?:tutorials|how-to|concepts|reference)\//;
const HELP = /(?:^|\/)src\/args(?:\/|\.rs$)/;
// The number of comments in a sample.
const SAMPLE = 60;
// Everyday nouns that are allowed in some folders, because the files there are about them.
const ALLOWED = [[/bookstore|4-connection-sentry/, /^books?$/i]];

const kernel = new TextlintKernel();
const plugins = [{ pluginId: 'markdown', plugin: markdown.default ?? markdown }];
const names = readdirSync(join(HERE, 'rules')).filter(name => name !== 'text.js');
const rules = await Promise.all(
    names.map(async name => ({ ruleId: name.replace('.js', ''), ...(await import(`./rules/${name}`)) })),
);

// Returns the findings in a file. Their kind is `docs`, `help` or `comments`.
async function findings(path, root = ROOT) {
    const source = readFileSync(join(root, path), 'utf8');
    const page = path.endsWith('.md');
    const { text, places, openings } = page ? { text: source } : comments(path, source);
    if (!text.trim()) return [];
    // In Go, a comment begins with the name of its item.
    const options = {
        openings: path.endsWith('.go') ? undefined : openings,
        page,
        guide: GUIDE.test(path),
        allowed: ALLOWED.find(([folder]) => folder.test(path))?.[1],
    };
    const { messages } = await kernel.lintText(text, {
        ext: '.md',
        filePath: path,
        plugins,
        rules: rules.map(({ ruleId, default: rule }) => ({ ruleId, rule, options })),
    });
    const kind = page ? 'docs' : HELP.test(path) ? 'help' : 'comments';
    return messages.map(({ ruleId, line, message }) => {
        const at = `${path}:${places?.[line - 1] ?? line}`;
        return { kind, path, rule: ruleId, at, line: `${at}: ${ruleId}: ${message}` };
    });
}

function git(...args) {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean);
}

// Returns the findings in doc comments that explain why there are more than allowed: those in files
// that have changed since the limits were written, or all.
function recent(found) {
    const [written] = git('log', '-1', '--format=%H', '--', LIMITS);
    const changed = written ? [...git('diff', '--name-only', written), ...git('ls-files', '--others', '--exclude-standard')] : [];
    const of = found.filter(({ path }) => changed.includes(path));
    return of.length ? of : found;
}

async function check(argument) {
    const found = [];
    for (const path of git('ls-files', '--cached', '--others', '--exclude-standard')) {
        // A file may be deleted and not yet committed. A folder may be another repository.
        const isFile = lstatSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile();
        if (isFile && TEXTS.test(path)) found.push(...(await findings(path)));
    }
    const limits = JSON.parse(readFileSync(LIMITS, 'utf8'));
    const texts = found.filter(({ kind }) => kind !== 'comments');
    const lines = argument === '--list' ? found.map(({ line }) => line) : texts.map(({ line }) => line);
    const counts = {};
    for (const { ruleId } of rules) {
        const ofRule = found.filter(({ kind, rule }) => kind === 'comments' && rule === ruleId);
        counts[ruleId] = ofRule.length;
        if (ofRule.length <= (limits[ruleId] ?? 0) || argument) continue;
        lines.push(...recent(ofRule).map(({ line }) => line));
        lines.push(`doc comments: ${ofRule.length} findings of ${ruleId}, at most ${limits[ruleId] ?? 0} are allowed`);
    }
    for (const line of lines) console.log(line);
    if (argument === '--lower') {
        const lower = rules.map(({ ruleId }) => [ruleId, Math.min(counts[ruleId], limits[ruleId] ?? Infinity)]);
        writeFileSync(LIMITS, `${JSON.stringify(Object.fromEntries(lower), null, 4)}\n`);
    }
    const fewer = rules.some(({ ruleId }) => counts[ruleId] < limits[ruleId]) ? '; lower the limits by --lower' : '';
    const summary = rules.map(({ ruleId }) => `${counts[ruleId]} ${ruleId}`).join(', ');
    console.log(`language: ${texts.length} findings in documentation and help; in doc comments: ${summary}${fewer}`);
    process.exitCode = lines.length && argument !== '--list' ? 1 : 0;
}

// Prints doc comments that a reader should judge, with their places. The same seed draws the same
// comments from the same sources.
function sample(seed) {
    const all = [];
    for (const path of git('ls-files').filter(name => TEXTS.test(name) && !name.endsWith('.md'))) {
        if (!lstatSync(join(ROOT, path)).isFile()) continue;
        const { text, places, openings } = comments(path, readFileSync(join(ROOT, path), 'utf8'));
        const lines = text.split('\n');
        const begins = [...openings, lines.length + 1];
        for (const [index, opening] of [...openings].entries()) {
            const comment = lines.slice(opening - 1, begins[index + 1] - 1).join('\n').trim();
            all.push({ at: `${path}:${places[opening - 1]}`, comment });
        }
    }
    const weigh = ({ at }) => createHash('sha256').update(`${seed} ${at}`).digest('hex');
    const drawn = all.map(one => [weigh(one), one]).sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, { at, comment }] of drawn.slice(0, SAMPLE)) console.log(`${at}\n${comment}\n`);
    console.log(`language: ${SAMPLE} of ${all.length} doc comments, drawn with seed ${seed}`);
}

// For each language, a file with one finding, in its line 3.
const SAMPLES = {
    'a.rs': '//! A file.\n\n/// Of itself.\nlet x = 1; // Of code.\n',
    'src/args.rs': 'struct A {\n\n    /// Of itself.\n    a: u8,\n}\n',
    'a.go': '// Of a note.\n\n// Of itself.\nfunc f() {}\n',
    'a.py': 'def f():\n    """Returns f.\n    Of itself."""\n    """Of code."""\n',
    script: '#!/usr/bin/env python3\n"""A script.\nOf itself.\n"""\n',
    'a.ts': '// A file.\n/** A function. */\n/** Of itself. */ function f() {}\n// Of a note.\n',
    'a.h': '/* A file.\n *\n * Of itself. */\nint f(void);\n',
};

// Checks that each rule finds its wrong samples in a file and none of its right ones, and that
// comments of each language are read.
async function selfTest() {
    const root = mkdtempSync(join(tmpdir(), 'language-'));
    const found = async (path, text) => {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), text);
        return findings(path, root);
    };
    for (const { ruleId, path = 'README.md', wrong, right } of rules) {
        const finds = async sample => {
            const text = path.endsWith('.rs') ? sample.replace(/^/gm, '/// ') : sample;
            return (await found(path, text)).some(({ rule }) => rule === ruleId);
        };
        for (const sample of wrong) if (!(await finds(sample))) throw Error(`${ruleId} does not find: ${sample}`);
        for (const sample of right) if (await finds(sample)) throw Error(`${ruleId} finds: ${sample}`);
    }
    for (const [path, text] of Object.entries(SAMPLES)) {
        const lines = (await found(path, text)).filter(({ rule }) => rule === 'subject').map(({ at }) => at);
        if (lines.join() !== `${path}:3`) throw Error(`${path}: findings at ${lines}`);
    }
    rmSync(root, { recursive: true });
    console.log(`language: the ${rules.length} rules find their samples`);
}

const [argument] = process.argv.slice(2);
if (argument === '--sample') sample(process.argv[3]);
else await (argument === '--self-test' ? selfTest() : check(argument));
