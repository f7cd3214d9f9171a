// The documentation: every relative link resolves, every make target and file that a page names exists, the two front pages stay short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "source_text.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

const fs::path root = MOTLEY_SOURCE_DIR;

struct Page {
  fs::path path;
  std::vector<std::string> lines;  // of fenced blocks: empty
  std::vector<std::string> code;   // lines of fenced blocks
};

Page read_page(const fs::path& path) {
  Page page{path, {}, {}};
  bool fenced = false;
  for (const std::string& line : lines_of(read_text(path))) {
    const bool fence = line.starts_with("```");
    if (fence) fenced = !fenced;
    page.lines.push_back(fenced || fence ? "" : line);
    if (fenced && !fence) page.code.push_back(line);
  }
  return page;
}

std::vector<Page> all_pages() {
  std::vector<Page> pages;
  const auto add = [&](const fs::path& path) {
    if (path.extension() == ".md") pages.push_back(read_page(path));
  };
  for (const auto& entry : fs::directory_iterator(root)) add(entry.path());
  for (const char* folder : {"docs", "examples", "containers", "src"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) add(entry.path());
  return pages;
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern); match != std::sregex_iterator(); ++match)
    found.push_back((*match)[1]);
  return found;
}

/// The anchor of a heading as GitHub makes it: lower case, spaces as hyphens, without punctuation.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ')
      anchor += '-';
    else if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80)
      anchor += static_cast<char>(std::tolower(byte));
  }
  return anchor;
}

std::set<std::string> anchors_of(const Page& page) {
  std::set<std::string> anchors;
  for (const std::string& line : page.lines)
    if (line.starts_with("#")) anchors.insert(anchor_of(line.substr(std::min(line.find_first_not_of("# "), line.size()))));
  return anchors;
}

/// Why a link of this page leads nowhere; empty when it resolves.
std::string broken(const Page& page, const std::string& link) {
  if (link.starts_with("http://") || link.starts_with("https://") || link.starts_with("mailto:")) return "";
  const std::size_t hash = link.find('#');
  const std::string file = link.substr(0, hash);
  const fs::path target = file.empty() ? page.path : page.path.parent_path() / file;
  if (!fs::exists(target)) return "no such file";
  if (hash == std::string::npos) return "";
  return anchors_of(read_page(target)).contains(link.substr(hash + 1)) ? "" : "no such heading";
}

TEST(Documents, Relative_links_resolve) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  const std::vector<Page> pages = all_pages();
  EXPECT_GT(pages.size(), 10U);
  for (const Page& page : pages)
    for (std::size_t n = 0; n < page.lines.size(); ++n)
      for (const std::string& target : matches(page.lines[n], link))
        if (const std::string why = broken(page, target); !why.empty())
          ADD_FAILURE() << page.path.lexically_relative(root).string() << ":" << n + 1 << ": " << target << ": " << why;
}

TEST(Documents, Broken_links_are_found) {
  const Page page{root / "docs" / "page.md", {"# One heading, here"}, {}};
  EXPECT_EQ(broken(page, "job.md"), "");
  EXPECT_EQ(broken(page, "https://example.org/x"), "");
  EXPECT_EQ(broken(page, "no-such.md"), "no such file");
  EXPECT_EQ(broken(page, "job.md#no-such"), "no such heading");
  EXPECT_EQ(anchor_of("One `heading`, here"), "one-heading-here");
}

TEST(Documents, Files_and_make_targets_exist) {
  static const std::regex file(
      R"((?:^|[^/A-Za-z])((?:src|tests|docs|examples|scripts|cmake|include|fuzz|containers)/[A-Za-z0-9_./-]*[A-Za-z0-9_]))");
  static const std::regex make(R"((?:^|`)make ([a-z-]+))");
  const std::string makefile = read_text(root / "Makefile");
  for (const char* name : {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}) {
    const Page page = read_page(root / name);
    std::vector<std::string> lines = page.lines;
    lines.insert(lines.end(), page.code.begin(), page.code.end());
    for (const std::string& line : lines) {
      for (const std::string& path : matches(line, file)) {
        const bool pattern = std::any_of(path.begin(), path.end(), [](unsigned char c) { return std::isupper(c) != 0; });  // MODULE, NAME
        const bool exists = fs::exists(root / path) || fs::exists(root / (path + ".h")) || fs::exists(root / (path + ".cpp"));
        EXPECT_TRUE(exists || pattern || line.find("new file") != std::string::npos) << name << ": " << path;
      }
      for (const std::string& target : matches(line, make))
        EXPECT_NE(makefile.find("\n" + target + ": "), std::string::npos) << name << ": make " << target;
    }
  }
}

TEST(Documents, Front_pages_stay_short) {
  EXPECT_LE(lines_of(read_text(root / "README.md")).size(), 150U);
  EXPECT_LE(lines_of(read_text(root / "ARCHITECTURE.md")).size(), 200U);
}

}  // namespace
}  // namespace motley
