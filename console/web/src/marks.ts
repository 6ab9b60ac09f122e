// Decisions as marks on a chart and as words.
import { visible } from './visible';
import type { Mark } from './chart';
import type { Note } from './shapes';

const SYMBOLS: Record<Note['what'], string> = {
    proposed: '?',
    asked: '?',
    approved: '▼',
    tried: '▽',
    rejected: '✕',
    overridden: '▼',
    undone: '△',
    ended: '△',
    reloaded: '↻',
};

export const marksOf = (notes: readonly Note[]): Mark[] =>
    notes.map(note => ({ at: Date.parse(note.at) / 1000, symbol: SYMBOLS[note.what] ?? '·' }));

export const symbolOf = (note: Note): string => SYMBOLS[note.what] ?? '·';

/** Of what a decision is. */
export function subjectOf(note: Note): string {
    if (note.of === 'elephant') return `elephant ${note.number} (${visible(note.pattern)})`;
    if (note.of === 'class') return `class ${note.class}: ${note.mode} for ${note.percent} %`;
    return note.of === 'bypass' ? 'bypass' : 'the configuration file';
}

/** A decision in one line. */
export const saidOf = (note: Note): string =>
    `${note.what} ${subjectOf(note)} by ${visible(note.by)}: ${visible(note.why)}`;
