// Light or dark: as the system says, or as was chosen here. Charts are drawn with the colours of the style sheet, and
// drawn anew when those are others.
import { Signal } from './signal';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'bywash.theme';
const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

export const theme = new Signal<Theme>(kept());
/** Another number whenever colours are others. */
export const palette = new Signal(0);

export function beginTheme(): void {
    apply(theme.value);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => palette.set(palette.value + 1));
}

export function nextTheme(): void {
    const next = NEXT[theme.value];
    try {
        localStorage.setItem(KEY, next);
    } catch {
        // It lasts as long as this page.
    }
    theme.set(next);
    apply(next);
    palette.set(palette.value + 1);
}

const known = new Map<string, string>();
let knownOf = -1;

/** Is asked of the style sheet once, as that makes the browser look at the whole page. */
export function colour(property: string): string {
    if (knownOf !== palette.value) known.clear();
    knownOf = palette.value;
    const text =
        known.get(property) ?? (getComputedStyle(document.documentElement).getPropertyValue(property).trim() || '#888');
    known.set(property, text);
    return text;
}

function apply(of: Theme): void {
    if (of === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = of;
}

function kept(): Theme {
    try {
        const text = localStorage.getItem(KEY);
        return text === 'light' || text === 'dark' ? text : 'system';
    } catch {
        return 'system';
    }
}
