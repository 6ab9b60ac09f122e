// A tile with one number, its unit and its time range.
import { Sparkline } from './sparkline';

interface Properties {
    name: string;
    value: string;
    unit?: string;
    window: string;
    means: string;
    beside?: string | undefined;
    course?: readonly (number | undefined)[];
    most?: number;
    isFirst?: boolean;
}

export function Tile({ name, value, unit, window, means, beside, course, most, isFirst }: Properties) {
    return (
        <div class={isFirst ? 'tile first' : 'tile'} title={means}>
            <h3>{name}</h3>
            <p class="value">
                {value}
                {unit && <small> {unit}</small>}
            </p>
            <p class="window">{window}</p>
            {beside && <p class="window beside">{beside}</p>}
            {course && <Sparkline values={course} {...(most === undefined ? {} : { most })} />}
        </div>
    );
}
