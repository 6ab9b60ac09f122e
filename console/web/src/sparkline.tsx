// A small chart of a number over time, next to the number. It is hidden from screen readers, which
// read the number.

export function Sparkline({ values, most }: { values: readonly (number | undefined)[]; most?: number }) {
    const known = values.filter((value): value is number => value !== undefined && Number.isFinite(value));
    const top = Math.max(most ?? 0, ...known) || 1;
    const step = 100 / Math.max(1, values.length - 1);
    let path = '';
    let isDown = false;
    values.forEach((value, at) => {
        if (value === undefined || !Number.isFinite(value)) {
            isDown = false;
            return;
        }
        path += `${isDown ? 'L' : 'M'}${(at * step).toFixed(1)} ${(23 - (value / top) * 22).toFixed(1)}`;
        isDown = true;
    });
    return (
        <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
            <path d={path} vector-effect="non-scaling-stroke" />
        </svg>
    );
}
