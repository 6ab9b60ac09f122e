// Decisions of the audit log, as marks on a chart and as text.
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

/** Names the subject of a decision. */
export function subjectOf(note: Note): string {
    if (note.of === 'elephant') return `elephant ${note.number} (${visible(note.pattern)})`;
    if (note.of === 'class') return `class ${note.class}: ${note.mode} for ${note.enforce_percent} % of visitors`;
    if (note.of === 'population') return `population ${note.population}: level ${note.level}`;
    return note.of === 'bypass' ? 'the bypass' : 'the configuration file';
}

/** Names the author of a decision, with the gateway if the decision holds for a fleet. */
export const authorOf = (note: Note): string =>
    visible(note.by) + (note.fleet ? ` at ${visible(note.fleet.gateway)}` : '');

const VERBS: Record<Note['what'], string> = {
    proposed: 'proposed',
    asked: 'asked for the effect of a rule for',
    approved: 'approved a rule for',
    tried: 'tried a rule for',
    rejected: 'rejected',
    overridden: 'set',
    undone: 'undid',
    ended: 'ended the decision on',
    reloaded: 'reloaded',
};

/** Describes a decision in one line. */
export const saidOf = (note: Note): string =>
    note.what === 'reloaded'
        ? 'the configuration was reloaded'
        : `${authorOf(note)} ${VERBS[note.what]} ${subjectOf(note)}: ${visible(note.why)}`;
