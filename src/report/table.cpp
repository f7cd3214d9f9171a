// Lays the cells of columns.h out in plain text and in Markdown.
#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "report/columns.h"
#include "report/ranking.h"
#include "report/text.h"

namespace motley::report {
namespace {

constexpr std::size_t page_width = 120;
constexpr std::size_t gap = 2;
constexpr std::size_t narrowest_name = 12;  // holds every preset's name
constexpr std::string_view mark = "* ";
constexpr std::string_view no_mark = "  ";

/// Headings first, then one line of cells per row; the name is not among them.
std::vector<std::vector<Cell>> cells(const Comparison& comparison) {
  std::vector<std::vector<Cell>> lines(1 + comparison.rows.size());
  for (const Column& column : columns(comparison)) {
    lines[0].push_back({column.heading, ""});
    for (std::size_t i = 0; i < comparison.rows.size(); ++i) lines[i + 1].push_back(column.cell(comparison.rows[i]));
  }
  return lines;
}

/// Asides are aligned apart from their figures, so that both read down the column.
struct Widths {
  std::size_t figure{};
  std::size_t aside{};  // with its brackets and the space before them
  std::size_t whole{};  // also as wide as the heading
};

std::string bracketed(const Cell& cell) { return cell.aside.empty() ? "" : fmt::format(" ({})", cell.aside); }

std::vector<Widths> widths(const std::vector<std::vector<Cell>>& lines) {
  std::vector<Widths> widest(lines[0].size());
  for (std::size_t c = 0; c < widest.size(); ++c) {
    Widths& column = widest[c];
    for (std::size_t i = 1; i < lines.size(); ++i) {
      column.figure = std::max(column.figure, width(lines[i][c].figure));
      column.aside = std::max(column.aside, width(bracketed(lines[i][c])));
    }
    column.whole = std::max(width(lines[0][c].figure), column.figure + column.aside);
  }
  return widest;
}

std::string left(std::string_view text, std::size_t columns) {
  return std::string(text).append(columns - std::min(columns, width(text)), ' ');
}
std::string right(std::string_view text, std::size_t columns) {
  return std::string(columns - std::min(columns, width(text)), ' ').append(text);
}

std::string aligned(const Cell& cell, const Widths& widths) {
  return right(right(cell.figure, widths.figure) + left(bracketed(cell), widths.aside), widths.whole);
}

std::size_t width_of_all(const std::vector<Widths>& all) {
  return std::accumulate(all.begin(), all.end(), std::size_t{0}, [](std::size_t sum, const Widths& one) { return sum + gap + one.whole; });
}

/// How wide the column of names is: as wide as the longest, within what the figures leave of the page.
std::size_t name_width(const Comparison& comparison, std::size_t taken) {
  std::size_t longest = width("strategy");
  for (const Row& row : comparison.rows) longest = std::max(longest, width(printable(row.strategy)));
  const std::size_t room = page_width > taken ? page_width - taken : 0;
  return std::min(longest, std::max(room, narrowest_name));
}

void drop_aside(std::vector<std::vector<Cell>>& lines, std::string_view heading) {
  for (std::size_t c = 0; c < lines[0].size(); ++c)
    if (lines[0][c].figure == heading)
      for (std::vector<Cell>& line : lines) line[c].aside.clear();
}

std::string legend(const Comparison& comparison) {
  if (!comparison.target_accuracy) return "samples/s (share of the sum of the parts).  comm: not hidden.\n";
  return fmt::format("* fastest.  time: of the mean curve{}.  samples/s (share of the sum of the parts).  comm: not hidden.\n",
                     comparison.seeds.size() > 1 ? fmt::format(" (min–max of {} seeds)", comparison.seeds.size()) : "");
}

}  // namespace

std::string text_table(const Comparison& comparison) {
  auto lines = cells(comparison);
  auto column_widths = widths(lines);
  if (mark.size() + width_of_all(column_widths) + narrowest_name > page_width) {
    drop_aside(lines, "comm");  // the figure that is missed least
    column_widths = widths(lines);
  }
  const std::size_t figures = mark.size() + width_of_all(column_widths);
  const std::size_t names = name_width(comparison, figures);
  const auto first = fastest(comparison);

  std::string out = fmt::format("{}{}", no_mark, left("strategy", names));
  for (std::size_t c = 0; c < column_widths.size(); ++c) out += std::string(gap, ' ') + right(lines[0][c].figure, column_widths[c].whole);
  out += '\n';
  for (std::size_t i = 0; i < figures + names; ++i) out += "─";
  out += '\n';
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const std::vector<std::string> name = wrap(printable(comparison.rows[i].strategy), names);
    out += fmt::format("{}{}", first == i ? mark : no_mark, left(name[0], names));
    for (std::size_t c = 0; c < column_widths.size(); ++c) out += std::string(gap, ' ') + aligned(lines[i + 1][c], column_widths[c]);
    out += '\n';
    for (std::size_t more = 1; more < name.size(); ++more) out += fmt::format("{}{}\n", no_mark, name[more]);
  }
  if (comparison.rows.empty()) out += "  no strategies\n";
  return out + legend(comparison);
}

std::string markdown_table(const Comparison& comparison) {
  const auto lines = cells(comparison);
  const auto first = fastest(comparison);
  std::string out = "| strategy |";
  std::string rule = "|---|";
  for (const Cell& heading : lines[0]) {
    out += fmt::format(" {} |", escape_markdown(heading.figure));
    rule += "---:|";
  }
  out += '\n' + rule + '\n';
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    const std::string name = escape_markdown(comparison.rows[i].strategy);
    out += first == i ? fmt::format("| **{}** |", name) : fmt::format("| {} |", name);
    for (const Cell& cell : lines[i + 1]) out += fmt::format(" {}{} |", escape_markdown(cell.figure), escape_markdown(bracketed(cell)));
    out += '\n';
  }
  return out;
}

}  // namespace motley::report
