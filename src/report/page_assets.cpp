// Plain CSS and plain JavaScript, written to be read here: no build step stands between this file and the page.
#include "report/page_assets.h"

namespace motley::report {

const std::string_view page_style = R"(
:root{--ground:#f6f7f8;--card:#ffffff;--ink:#1c2126;--soft:#5b6570;--rule:#e1e5e9;--accent:#0072b2;--win:#eaf4fb;color-scheme:light dark}
@media screen and (prefers-color-scheme:dark){:root{--ground:#0d1013;--card:#14181d;--ink:#e8ebee;--soft:#a3adb8;--rule:#2c333b;--accent:#5db3ee;--win:#14283a}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:40px 24px 56px}
.eyebrow{margin:0 0 10px;color:var(--soft);font-size:13px;letter-spacing:.02em}
.eyebrow b{color:var(--ink)}
h1{margin:0;max-width:34em;font-size:30px;line-height:1.25;letter-spacing:-.012em;font-weight:650;text-wrap:balance;overflow-wrap:anywhere}
.remarks{margin:12px 0 0;max-width:62em;color:var(--soft);font-size:16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px;margin:28px 0 0;padding:0}
.tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px;display:flex;flex-direction:column-reverse;justify-content:flex-end}
.tiles dt{color:var(--soft);font-size:13px}
.tiles dd{margin:0;font-size:24px;font-weight:650;letter-spacing:-.01em;white-space:nowrap}
section{margin:16px 0 0;background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:22px 24px}
h2{margin:0;font-size:18px;font-weight:650;letter-spacing:-.005em}
.lede{margin:4px 0 14px;max-width:78em;color:var(--soft);font-size:14px}
.scroll{overflow-x:auto}
table{width:100%;border-collapse:collapse;font-size:14px}
th,td{padding:8px 10px;text-align:right;vertical-align:top;white-space:nowrap;border-bottom:1px solid var(--rule)}
thead th{color:var(--soft);font-weight:500;font-size:13px;vertical-align:bottom;border-bottom-color:var(--soft)}
th:first-child{text-align:left;padding-left:8px;white-space:normal;overflow-wrap:anywhere;min-width:150px}
tbody th{font-weight:500}
tbody tr:last-child>*{border-bottom:0}
tbody tr.best>*{background:var(--win);font-weight:650}
tbody tr.best th:first-child{border-radius:6px 0 0 6px}
tbody tr.best td:last-child{border-radius:0 6px 6px 0}
td small{display:block;color:var(--soft);font-size:12px;font-weight:400}
.missing{color:var(--soft)}
.badge{margin-left:8px;padding:1px 7px;border-radius:99px;background:var(--accent);color:var(--card);font-size:11px;font-weight:600;vertical-align:1px}
.swatch{margin-right:9px;vertical-align:1px}
details{margin-top:12px;font-size:13px;color:var(--soft)}
summary{cursor:pointer}
details dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:10px 0 0}
details dt{color:var(--ink)}
details dd{margin:0}
svg.chart{display:block;width:100%;height:auto}
#accuracy,#target{min-width:720px}
#phases,#states-legend{max-width:100%;margin:0 0 14px}
#phases{width:440px}
#states-legend{width:660px}
.pair,.triple{display:grid;gap:20px 28px}
.pair{grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr))}
.triple{grid-template-columns:repeat(auto-fill,minmax(min(100%,280px),1fr))}
.cluster{margin:0;padding:0;list-style:none;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:0 28px;font-size:14px}
.cluster li{padding:6px 0;border-bottom:1px solid var(--rule)}
.facts{margin:18px 0 0;font-size:14px}
.command{position:relative;margin:14px 0 0}
pre{margin:0;padding:12px 76px 12px 14px;background:var(--ground);border:1px solid var(--rule);border-radius:8px;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.command button{position:absolute;top:8px;right:8px;padding:4px 10px;border:1px solid var(--rule);border-radius:6px;background:var(--card);color:var(--ink);font:inherit;font-size:12px;cursor:pointer}
footer{margin:20px 0 0;color:var(--soft);font-size:13px}
.tip{position:fixed;z-index:9;pointer-events:none;min-width:180px;padding:9px 12px;background:var(--card);border:1px solid var(--rule);border-radius:8px;box-shadow:0 6px 24px #0003;font-size:12.5px;line-height:1.55}
.tip div{display:flex;justify-content:space-between;gap:18px}
.tip span::before{content:"";display:inline-block;width:9px;height:9px;margin-right:7px;border-radius:2px;background:currentColor}
.tip i{font-style:normal;color:var(--ink)}
@media (max-width:640px){main{padding:24px 14px}h1{font-size:23px}.tiles{grid-template-columns:1fr 1fr}.tiles dd{font-size:19px}section{padding:16px 14px}}
@media print{
@page{margin:14mm}
body{background:none;font-size:11px}
main{max-width:none;padding:0}
h1{font-size:20px}
.remarks{font-size:12px}
.lede,.facts,.cluster,details{font-size:11px}
section{border:0;border-radius:0;padding:10px 0;margin:0}
.tiles{grid-template-columns:repeat(5,1fr);gap:8px;margin-top:14px}
.tiles div{padding:8px 10px}
.tiles dt{font-size:10px}
.tiles dd{font-size:15px}
table{font-size:10px}
thead th{font-size:9px}
td small{font-size:9px}
th,td{padding:4px 5px}
th:first-child{min-width:0}
tbody tr.best>*{background:none}
h2,.lede{break-after:avoid}
figure,.pair svg,.triple svg,.tiles,tr,details,section:last-of-type{break-inside:avoid}
.pair{grid-template-columns:1fr 1fr}
.triple{grid-template-columns:1fr 1fr 1fr}
#accuracy,#target{min-width:0}
.scroll{overflow:visible}
.command button,.tip{display:none}
pre{padding-right:14px}
}
)";

const std::string_view page_script = R"(
(() => {
  const marked = [...document.querySelectorAll('[data-s]')];
  const names = {};
  for (const row of document.querySelectorAll('tbody tr[data-s]')) names[row.dataset.s] = row.dataset.name;
  let pinned = null;
  const look = s => {
    for (const e of marked) if (e.classList.contains('fades')) e.classList.toggle('faded', s !== null && e.dataset.s !== s);
  };
  for (const e of marked) {
    e.addEventListener('pointerenter', () => look(e.dataset.s));
    e.addEventListener('pointerleave', () => look(pinned));
    e.addEventListener('click', () => look(pinned = pinned === e.dataset.s ? null : e.dataset.s));
  }

  // The chart's own title would pop up wherever the pointer rests.
  for (const title of document.querySelectorAll('svg.chart>title')) {
    title.parentNode.setAttribute('aria-label', title.textContent);
    title.parentNode.removeAttribute('aria-labelledby');
    title.remove();
  }

  const chart = document.getElementById('accuracy');
  const curves = chart ? [...chart.querySelectorAll('g[clip-path] polyline.mean')] : [];
  if (curves.length) {
    const [left, top, width, height, seconds, low, high] = chart.dataset.plot.split(' ').map(Number);
    const tip = document.createElement('div');
    tip.className = 'tip';
    tip.hidden = true;
    document.body.append(tip);
    const rule = document.createElementNS(chart.namespaceURI, 'line');
    rule.setAttribute('class', 'axis');
    chart.append(rule);
    for (const curve of curves) curve.querySelector('title')?.remove();
    const height_at = (curve, x) => {
      const points = curve.points;
      for (let i = 1; i < points.numberOfItems; ++i) {
        const a = points.getItem(i - 1), b = points.getItem(i);
        if (a.x <= x && x <= b.x) return b.x === a.x ? b.y : a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x);
      }
      return null;
    };
    const hide = () => { tip.hidden = true; rule.style.display = 'none'; };
    hide();
    chart.addEventListener('pointerleave', hide);
    chart.addEventListener('pointermove', event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      if (at.x < left || at.x > left + width || at.y < top || at.y > top + height) return hide();
      const lines = curves.map(curve => ({ row: curve.parentNode, y: height_at(curve, at.x) })).filter(line => line.y !== null).sort((a, b) => a.y - b.y);
      if (!lines.length) return hide();
      tip.replaceChildren(`at ${(seconds * (at.x - left) / width).toFixed(1)} s`);
      for (const line of lines) {
        const entry = document.createElement('div'), name = document.createElement('span'), text = document.createElement('i'), value = document.createElement('b');
        name.setAttribute('class', line.row.getAttribute('class'));
        text.textContent = names[line.row.dataset.s];
        name.append(text);
        value.textContent = (100 * (high - (high - low) * (line.y - top) / height)).toFixed(1) + ' %';
        entry.append(name, value);
        tip.append(entry);
      }
      for (const [key, value] of Object.entries({ x1: at.x, x2: at.x, y1: top, y2: top + height })) rule.setAttribute(key, value);
      rule.style.display = '';
      tip.hidden = false;
      tip.style.left = Math.min(event.clientX + 18, innerWidth - tip.offsetWidth - 8) + 'px';
      tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
    });
  }

  const command = document.querySelector('.command');
  if (command && navigator.clipboard) {
    const button = document.createElement('button');
    button.textContent = 'Copy';
    button.addEventListener('click', () => navigator.clipboard.writeText(command.querySelector('code').textContent).then(() => { button.textContent = 'Copied'; }));
    command.append(button);
  }
  addEventListener('beforeprint', () => { for (const details of document.querySelectorAll('details')) details.open = true; });
})();
)";

}  // namespace motley::report
