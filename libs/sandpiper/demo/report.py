"""The demo's report: one HTML file with numbers, curves and three whole episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from sandpiper.demo.charts import Series, line_chart
from sandpiper.demo.stats import Interval

Json = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """Everything that the page shows."""

    title: str
    summary: Json
    before: Interval
    after: Interval
    gain: Interval
    steps: Sequence[Json]
    """`{"step", "seconds", "metrics": {...}}`, oldest first."""
    episodes: Sequence[Json]
    """Whole episodes as the api gives them."""

    def html(self) -> str:
        """The page."""
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        return environment.from_string(PAGE).render(
            report=self, charts=self._charts(), passed=self.gain.excludes_zero() and self.gain.low > 0
        )

    def _charts(self) -> list[tuple[str, str]]:
        curves = [
            ("Reward (mean of the step)", "reward_mean", "#1f77b4"),
            ("Pass rate of trained episodes", "pass_rate", "#2ca02c"),
            ("Staleness (mean, versions)", "staleness_mean", "#d62728"),
            ("Trained tokens per second", "tokens_per_s", "#9467bd"),
        ]
        return [(title, line_chart([self._series(name, colour)])) for title, name, colour in curves]

    def _series(self, name: str, colour: str) -> Series:
        points = [(float(s["step"]), float(s["metrics"][name])) for s in self.steps if name in s["metrics"]]
        return Series(name, colour, points)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ report.title }}</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 960px;
  padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } .charts { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem }
.card, details { border: 1px solid #ddd; border-radius: 8px; padding: .8rem 1rem; margin: .5rem 0 }
pre { background: #f6f6f6; padding: .6rem; overflow-x: auto; white-space: pre-wrap; border-radius: 6px }
table { border-collapse: collapse } td, th { padding: .25rem .8rem .25rem 0; text-align: left }
.big { font-size: 1.5rem } .good { color: #17722d } .flat { color: #8a5a00 } .none, small { color: #666 }
</style></head><body>
<h1>{{ report.title }}</h1>
<p class="big {{ 'good' if passed else 'flat' }}">Held-out pass rate
{{ '%.1f' % (100 * report.before.value) }} % → {{ '%.1f' % (100 * report.after.value) }} %
(gain {{ '%+.1f' % (100 * report.gain.value) }} points,
95 % interval {{ '%+.1f' % (100 * report.gain.low) }} to {{ '%+.1f' % (100 * report.gain.high) }})</p>
<p>{{ 'The interval excludes zero: the policy got better on tasks that it never trained on.' if passed else
'The interval includes zero: this run does not show that the policy got better on held-out tasks.' }}</p>
<table>{% for name, value in report.summary.items() %}
<tr><th>{{ name }}</th><td>{{ value }}</td></tr>{% endfor %}
</table>
<h2>Training</h2><div class="charts">{% for title, chart in charts %}
<div class="card"><b>{{ title }}</b>{{ chart | safe }}<small>optimizer step →</small></div>{% endfor %}</div>
<h2>Three episodes</h2>{% for episode in report.episodes %}
<details{{ ' open' if loop.first }}><summary><b>{{ episode.task_id }}</b> — {{ episode.state }}, reward
{{ episode.reward }}, {{ episode.turns | length }} turn(s), policy version {{ episode.version_max }}
<small>{{ episode.id }}</small></summary>{% for turn in episode.turns %}
<h4>Turn {{ turn.number }} <small>{{ turn.finish_reason }}, {{ turn.outcome or 'not executed' }}</small></h4>
{% for message in turn.messages %}
<small>{{ message.role }}</small><pre>{{ message.content }}</pre>{% endfor %}
<small>policy</small><pre>{{ turn.text }}</pre>
{% if turn.observation %}<small>observation</small><pre>{{ turn.observation }}</pre>{% endif %}{% endfor %}
<table>{% for test in episode.tests or [] %}<tr><td>{{ test.id }}</td><td>{{ test.status }}</td>
<td><small>{{ test.message }}</small></td></tr>{% endfor %}</table></details>{% endfor %}
</body></html>
"""
