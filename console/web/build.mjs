// Builds the console. `node build.mjs FOLDER` writes the five files that the gateway serves.
// `node build.mjs --tests` bundles the unit tests into out/tests. The same sources give the same
// bytes, so that the files in git can be compared with the sources.
import { build } from 'esbuild';
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const BUNDLED = ['preact', 'uplot'];
const shared = { bundle: true, target: 'es2022', jsx: 'automatic', jsxImportSource: 'preact', logLevel: 'warning' };

async function console_(folder) {
    await mkdir(folder, { recursive: true });
    await build({
        ...shared,
        entryPoints: { console: 'src/main.tsx' },
        outdir: folder,
        format: 'esm',
        minify: true,
        legalComments: 'none',
    });
    for (const file of ['index.html', 'favicon.svg']) await copyFile(join('src', file), join(folder, file));
    await writeFile(join(folder, 'LICENSES.txt'), (await Promise.all(BUNDLED.map(notice))).join('\n\n'));
}

async function notice(name) {
    const at = join('node_modules', name);
    const { version, license } = JSON.parse(await readFile(join(at, 'package.json'), 'utf8'));
    return `${name} ${version} (${license})\n\n${(await readFile(join(at, 'LICENSE'), 'utf8')).trim()}\n`;
}

async function tests() {
    await rm('out/tests', { recursive: true, force: true });
    const files = (await readdir('tests')).filter(name => name.endsWith('.test.ts'));
    await build({
        ...shared,
        entryPoints: files.map(name => join('tests', name)),
        outdir: 'out/tests',
        outExtension: { '.js': '.mjs' },
        format: 'esm',
        platform: 'node',
    });
}

const [asked] = process.argv.slice(2);
if (!asked) throw new Error('usage: node build.mjs FOLDER | --tests');
await (asked === '--tests' ? tests() : console_(asked));
