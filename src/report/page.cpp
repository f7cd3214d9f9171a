// One function per part of the page, from top to bottom; charts come from their own files.
#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/columns.h"
#include "report/groups_chart.h"
#include "report/headline.h"
#include "report/history_chart.h"
#include "report/number.h"
#include "report/page_assets.h"
#include "report/pipeline_chart.h"
#include "report/ranking.h"
#include "report/staleness_chart.h"
#include "report/state_staleness_chart.h"
#include "report/states_chart.h"
#include "report/style.h"
#include "report/target_chart.h"
#include "report/text.h"
#include "report/timeline_chart.h"

namespace motley::report {
namespace {

/// `body` is HTML; heading and lede are plain text.
std::string section(std::string_view id, std::string_view heading, std::string_view lede, std::string_view body) {
  return fmt::format(
      "<section aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n<p class=\"lede\">{2}</p>\n{3}</section>\n", id,
      escape_xml(heading), escape_xml(lede), body);
}

std::string tile(std::string_view label, std::string_view figure) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_xml(label), escape_xml(figure));
}

/// The winner in a few figures; nothing when no strategy reached the target.
std::string tiles(const Comparison& comparison) {
  const auto best = fastest(comparison);
  if (!best) return {};
  const Row& row = comparison.rows[*best];
  std::string out = tile(fmt::format("to {} with {}", target_text(comparison), row.strategy), show_seconds(*row.time_to_target_s));
  if (row.speedup_vs_bsp && row.strategy != "bsp") out += tile("sooner than bsp", show_times(row.speedup_vs_bsp));
  if (row.speedup_vs_lb_bsp && row.strategy != "lb-bsp") out += tile("sooner than lb-bsp", show_times(row.speedup_vs_lb_bsp));
  out += tile("accuracy at the end", show_percent(row.final_accuracy_mean, row.final_accuracy_std, 1));
  if (row.sum_of_parts_samples_per_second > 0)
    out += tile("of the sum of the parts", show_percent(row.samples_per_second / row.sum_of_parts_samples_per_second, 0));
  return "<dl class=\"tiles\">\n" + out + "</dl>\n";
}

/// The subject of the page: one run, or several.
std::string subject(const Comparison& comparison) {
  return comparison.rows.size() == 1 ? comparison.rows[0].strategy : "comparison of strategies";
}

std::string header(const Comparison& comparison) {
  const Headline reported = headline(comparison);
  std::string remarks;
  for (const std::string& remark : reported.remarks) remarks += (remarks.empty() ? "" : " ") + escape_xml(remark);
  return fmt::format("<header>\n<p class=\"eyebrow\">Motley, {} on <b>{}</b></p>\n<h1>{}</h1>\n{}{}</header>\n",
                     escape_xml(subject(comparison)), escape_xml(comparison.job), escape_xml(reported.result),
                     remarks.empty() ? "" : fmt::format("<p class=\"remarks\">{}</p>\n", remarks), tiles(comparison));
}

std::string table_head(const std::vector<Column>& all) {
  std::string out = "<thead><tr><th scope=\"col\">strategy</th>";
  for (const Column& column : all)
    out += fmt::format("<th scope=\"col\" title=\"{}\">{}</th>", escape_xml(column.meaning), escape_xml(column.heading));
  return out + "</tr></thead>\n";
}

std::string table_cell(const Cell& cell) {
  const bool missing = cell.figure == no_number || cell.figure == "not reached";
  const std::string aside = cell.aside.empty() ? "" : fmt::format(" <small>{}</small>", escape_xml(cell.aside));
  return fmt::format("<td{}>{}{}</td>", missing ? " class=\"missing\"" : "", escape_xml(cell.figure), aside);
}

std::string table_row(const std::vector<Column>& all, const Row& row, std::size_t index, bool best) {
  const std::string name = escape_xml(row.strategy);
  std::string out = fmt::format("<tr data-s=\"{}\" data-name=\"{}\"{}><th scope=\"row\"><span class=\"{}\">{}</span>{}{}</th>", index, name,
                                best ? " class=\"best\"" : "", strategy_class(index), swatch(index), name,
                                best ? "<span class=\"badge\">fastest</span>" : "");
  for (const Column& column : all) out += table_cell(column.cell(row));
  return out + "</tr>\n";
}

std::string meanings(const std::vector<Column>& all) {
  std::string out = "<details><summary>What the columns mean</summary>\n<dl>\n";
  for (const Column& column : all) out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_xml(column.heading), escape_xml(column.meaning));
  return out + "</dl>\n</details>\n";
}

std::string table_section(const Comparison& comparison) {
  const std::vector<Column> all = columns(comparison);
  std::string rows;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) rows += table_row(all, comparison.rows[i], i, fastest(comparison) == i);
  return section(
      "results", "Results",
      "In the order of the command. The small figures give the spread over the seeds and the share of the sum of the parts.",
      fmt::format("<div class=\"scroll\"><table>\n{}<tbody>\n{}</tbody>\n</table></div>\n{}", table_head(all), rows, meanings(all)));
}

std::string figure(std::string_view svg) { return fmt::format("<figure class=\"scroll\" style=\"margin:0\">\n{}</figure>\n", svg); }

std::string accuracy_section(const Comparison& comparison) {
  return section("accuracy", "Accuracy over time",
                 std::string("Bold: the mean over the seeds, smoothed over 3 evaluations. Faint: each seed.") +
                     (comparison.target_accuracy ? " A dot marks where the mean reaches the target." : ""),
                 figure(accuracy_chart(comparison)));
}

std::string target_section(const Comparison& comparison) {
  return section("target", "Time to target", "Bars: the mean curve. Whiskers: from the soonest to the latest seed. Dots: each seed.",
                 figure(target_chart(comparison)));
}

std::string timeline_section(const Comparison& comparison) {
  const auto shown = common_window_s(comparison);
  std::string charts;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (!comparison.rows[i].pipeline) charts += timeline_chart(comparison.rows[i], i, shown);
  const std::string scale =
      shown ? "All strategies on one time scale." : "Each strategy on its own time scale: their steps differ too much for one.";
  return section("timeline", "What each worker does", "A window of a few steps of the first seed. " + scale,
                 fmt::format("{}<div class=\"pair\">\n{}</div>\n", phase_legend(), charts));
}

/// Only for strategies that decide during training.
std::string history_section(const Comparison& comparison) {
  std::string charts;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (has_history(comparison.rows[i])) charts += history_chart(comparison.rows[i], i);
  if (charts.empty()) return {};
  return section("history", "Decisions during training",
                 "The first seed, over its whole training: samples of each worker per step, bits of its values, and how nearly together "
                 "the workers of an update finished.",
                 fmt::format("<div class=\"pair\">\n{}</div>\n", charts));
}

std::string staleness_section(const Comparison& comparison) {
  const std::size_t bars = staleness_bars(comparison);
  std::string charts;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (!comparison.rows[i].pipeline) charts += staleness_chart(comparison.rows[i], i, bars);
  return section(
      "staleness", "Staleness",
      "How many versions late contributions were applied, first seed. One axis for all; heights are scaled to each strategy's tallest bar.",
      fmt::format("<div class=\"triple\">\n{}</div>\n", charts));
}

/// Only for strategies with states.
std::string states_section(const Comparison& comparison) {
  std::string state_timelines;
  std::string delays;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    if (!has_states(comparison.rows[i])) continue;
    state_timelines += states_chart(comparison.rows[i], i);
    delays += state_staleness_chart(comparison.rows[i], i);
  }
  if (state_timelines.empty()) return {};
  return section("states", "Stragglers",
                 "The first seed, over its whole training. Above: how far apart the workers were. A row per worker: where it straggled; "
                 "rest the pointer on it for the reason.",
                 fmt::format("{}<div class=\"pair\">\n{}</div>\n", states_legend(), state_timelines)) +
         section("state-staleness", "Staleness by state",
                 "How many versions late contributions were applied, by the state at that moment. Heights are scaled to each state's "
                 "tallest bar.",
                 fmt::format("<div class=\"triple\">\n{}</div>\n", delays));
}

/// Only of strategies that put workers into groups.
std::string groups_section(const Comparison& comparison) {
  std::string charts;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (has_groups(comparison.rows[i])) charts += groups_chart(comparison.rows[i], i);
  if (charts.empty()) return {};
  return section("groups", "Who worked in step with whom",
                 "The first seed, over its whole training. Workers of one colour wait for each other; below, how far each group's updates "
                 "moved the model.",
                 fmt::format("<div class=\"pair\">\n{}</div>\n", charts));
}

/// Only of pipelines.
std::string pipeline_section(const Comparison& comparison) {
  std::string charts;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (has_pipeline(comparison.rows[i])) charts += pipeline_chart(comparison.rows[i], i);
  if (charts.empty()) return {};
  return section("pipeline", "What each stage does",
                 "Three mini-batches from the middle of the first seed, each strategy on its own time scale.",
                 fmt::format("<div class=\"pair\">\n{}</div>\n", charts));
}

std::string seeds_text(const Comparison& comparison) {
  std::string out;
  for (const std::uint64_t seed : comparison.seeds) out += fmt::format("{}{}", out.empty() ? "" : ", ", seed);
  return out.empty() ? "none recorded" : out;
}

/// With a word before it, if there is one; nothing for an empty list.
std::string list(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string items;
  for (const std::string& line : lines) items += fmt::format("<li>{}</li>\n", escape_xml(line));
  const std::string head = title.empty() ? "" : fmt::format("<p class=\"facts\"><b>{}</b></p>\n", escape_xml(title));
  return fmt::format("{}<ul class=\"cluster\">\n{}</ul>\n", head, items);
}

std::string cluster_section(const Comparison& comparison) {
  const std::string cluster =
      list("", comparison.workers) + list("Servers and shared links", comparison.network) + list("Faults", comparison.faults);
  return section("again", "The cluster, and how to make this again",
                 fmt::format("{} workers; the same for every strategy.", comparison.workers.size()),
                 fmt::format("{}<p class=\"facts\"><b>Seeds</b> {}</p>\n<div class=\"command\"><pre><code>{}</code></pre></div>\n", cluster,
                             seeds_text(comparison), escape_xml(comparison.command)));
}

std::string charts_of_rows(const Comparison& comparison) {
  if (comparison.rows.empty()) return {};
  const bool pipelines_alone =
      std::all_of(comparison.rows.begin(), comparison.rows.end(), [](const Row& row) { return row.pipeline.has_value(); });
  if (pipelines_alone) return pipeline_section(comparison);
  return timeline_section(comparison) + pipeline_section(comparison) + history_section(comparison) + states_section(comparison) +
         groups_section(comparison) + staleness_section(comparison);
}

}  // namespace

std::string page(const Comparison& comparison) {
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}: {}</title>\n"
             "<style>{}{}</style>\n</head>\n<body>\n<main>\n",
             escape_xml(comparison.job), escape_xml(subject(comparison)), page_style, chart_style()) +
         header(comparison) + table_section(comparison) + accuracy_section(comparison) +
         (comparison.target_accuracy ? target_section(comparison) : "") + charts_of_rows(comparison) + cluster_section(comparison) +
         fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", page_script);
}

}  // namespace motley::report
