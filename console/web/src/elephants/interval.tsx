// A cost and its 95 % interval, as a small bar on the scale of its table. The text next to it says
// the same.

export function Interval({ low, at, high, most }: { low: number; at: number; high: number; most: number }) {
    const x = (value: number): number => (most > 0 ? Math.min(100, Math.max(0, (value / most) * 100)) : 0);
    return (
        <svg class="interval" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
            <line class="scale" x1="0" x2="100" y1="6" y2="6" vector-effect="non-scaling-stroke" />
            <rect x={x(low)} width={Math.max(1, x(high) - x(low))} y="2" height="8" />
            <line class="cost" x1={x(at)} x2={x(at)} y1="0" y2="12" vector-effect="non-scaling-stroke" />
        </svg>
    );
}
