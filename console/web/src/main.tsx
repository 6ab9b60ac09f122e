// The console: one page that answers whether orders get through, who is hurt and why, what to throttle, what was saved,
// and what would change.
import 'uplot/dist/uPlot.min.css';
import './styles/colours.css';
import './styles/text.css';
import './styles/frame.css';
import './styles/now.css';
import './styles/chart.css';
import './styles/table.css';
import './styles/form.css';
import './styles/views.css';
import './styles/small.css';
import { render } from 'preact';
import { Shell } from './shell';
import { beginTheme } from './theme';
import { beginPlace } from './place';
import { soon } from './slices';
import { watchOtherPages } from './operator';

beginTheme();
watchOtherPages();
const place = document.getElementById('console');
// Reading the script is a task by itself, and a long one.
void beginPlace().finally(() => place && soon(() => render(<Shell />, place)));
