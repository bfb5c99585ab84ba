// Draws curves from the tables that have their figures: axes, a cursor over all of them, and the values below it.
"use strict";
(() => {
  const drawn = new WeakMap();
  const day = 86_400;
  const write = (options) => {
    const format = new Intl.DateTimeFormat("en-GB", options);
    return (seconds) => format.format(new Date(seconds * 1000));
  };
  const hour = write({ hour: "2-digit", minute: "2-digit" });
  const date = write({ weekday: "short", day: "numeric" });
  const month = write({ day: "numeric", month: "short" });
  const whole = write({ weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

  const amount = (value) => {
    if (value >= 1e6) return `${Number((value / 1e6).toFixed(1))} M`;
    if (value >= 1e4) return `${Number((value / 1e3).toFixed(1))} k`;
    return String(Number(value.toFixed(value < 10 ? 2 : 0)));
  };
  const text = { "": amount, ms: (value) => (value >= 1000 ? `${Number((value / 1000).toFixed(1))} s` : `${Number(value.toFixed(value < 10 ? 1 : 0))} ms`) };

  // The columns of the table that the plot names, and the moments of its rows.
  const read = (plot) => {
    const table = document.getElementById(plot.dataset.table);
    const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
    const series = plot.dataset.series.split(" ").map((pair) => {
      const [name, colour] = pair.split("="), at = heads.findIndex((head) => head.dataset.series === name);
      const values = rows.map((row) => (row.cells[at].dataset.value ? Number(row.cells[at].dataset.value) : null));
      return { label: heads[at].textContent, colour, values };
    });
    return { times: rows.map((row) => Number(row.dataset.start)), series };
  };

  // Bars stand on each other: the first series is drawn last, from the bottom.
  const stacked = (series) => {
    const below = series[0].values.map(() => 0);
    return series.map((one) => one.values.map((value, at) => (below[at] += value ?? 0)));
  };

  const powers = (low, high) => {
    const found = [];
    for (let power = Math.round(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1) found.push(10 ** power);
    return found;
  };

  const draw = (plot) => {
    const { times, series } = read(plot);
    const known = JSON.stringify([times, series.map((one) => one.values)]);
    const before = drawn.get(plot);
    if (before?.known === known && before.width === plot.clientWidth) return;
    before?.chart.destroy();
    const style = getComputedStyle(document.documentElement), token = (name) => style.getPropertyValue(`--${name}`).trim();
    const probe = plot.appendChild(document.createElement("i"));
    const colour = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const kind = plot.dataset.kind, say = text[plot.dataset.unit ?? ""], logarithmic = kind === "lines";
    const bars = kind === "bars", columns = bars ? stacked(series) : series.map((one) => (logarithmic ? one.values.map((value) => value || null) : one.values));
    const font = `${parseFloat(getComputedStyle(plot).fontSize) * .8}px ${getComputedStyle(document.body).fontFamily}`;
    const ink = { stroke: colour("dim"), font, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    const options = {
      width: plot.clientWidth - 2 * parseFloat(getComputedStyle(plot).paddingLeft),
      height: 150,
      padding: [8, 8, 0, 0],
      cursor: { sync: { key: "pegboard" }, y: false, points: { size: 6 } },
      // A bar begins at its moment: without a step more the newest one would be outside of the plot.
      scales: { x: { range: (_, low, high) => [low, high + (times.length > 1 ? times[1] - times[0] : 1)] }, y: logarithmic
        ? { distr: 3, range: (_, low, high) => (low === null || low === undefined ? [1, 1000] : [10 ** Math.floor(Math.log10(low)), 10 ** Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1)]) }
        : { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
      axes: [
        { ...ink, size: 24, space: 70, values: (_, splits, axis, space, step) => splits.map((at) => (step < day ? (new Date(at * 1000).getHours() === 0 && step >= 7200 ? date(at) : hour(at)) : step < 7 * day ? date(at) : month(at))) },
        { ...ink, size: 52, values: (_, splits) => splits.map((value) => (value === null ? "" : say(value))), ...(logarithmic ? { splits: (chart, axis, low, high) => powers(low, high), filter: (_, splits) => splits } : { space: 32 }) },
      ],
      series: [
        { label: "Time", value: (_, value) => (value === null || value === undefined ? "–" : whole(value)) },
        ...series.map((one) => ({
          label: one.label,
          stroke: colour(`curve-${one.colour}`),
          width: 2,
          spanGaps: logarithmic,
          points: { show: logarithmic && times.length < 40, size: 4 },
          ...(bars ? { fill: colour(`curve-${one.colour}`), width: 0, paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }), points: { show: false } } : {}),
          ...(kind === "area" ? { fill: colour(`curve-${one.colour}`).replace(/^rgb\((.*)\)$/, "rgba($1, .15)"), points: { show: false } } : {}),
          value: (_, value, column, at) => (at === null || one.values[at] === null || one.values[at] === undefined ? "–" : say(one.values[at])),
        })),
      ],
    };
    probe.remove();
    // The highest bars are drawn first, so that those below them stay in sight.
    if (bars) options.series = [options.series[0], ...options.series.slice(1).reverse()];
    const data = [times, ...(bars ? columns.reverse() : columns)];
    drawn.set(plot, { known, width: plot.clientWidth, chart: new uPlot(options, data, plot) });
  };

  const all = () => {
    for (const plot of document.querySelectorAll(".plot")) draw(plot);
  };
  const anew = () => {
    for (const plot of document.querySelectorAll(".plot")) {
      drawn.get(plot)?.chart.destroy();
      drawn.delete(plot);
    }
    all();
  };
  document.addEventListener("htmx:after:swap", all);
  addEventListener("resize", all);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
  all();
})();
