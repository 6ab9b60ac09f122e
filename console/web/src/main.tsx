// The start of the console. The console is one page that shows whether orders get through, which
// requests are hurt and why, what to throttle, what was saved, and what would change.
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
// Evaluating the script is a long task by itself, so the page is drawn in another one.
void beginPlace().finally(() => place && soon(() => render(<Shell />, place)));
