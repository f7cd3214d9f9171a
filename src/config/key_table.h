// The keys that a reader asked a document for, with type, default, limits and meaning: docs/job.md is printed from it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace motley::config {

struct KeyRow {
  std::string key;
  std::string type;      // "number", "integer", "bytes", "text", "choice", ...
  std::string preset;    // default value of an absent key; "required"; empty: none
  std::string accepted;  // limits or words
  std::string unit;      // empty: none
  std::string meaning;
};

/// One table of the document, such as [job] or [[cluster.node]].
struct KeySection {
  std::string path;
  bool repeated = false;  // an array of tables
  std::string meaning;
  std::vector<KeyRow> rows;
};

class KeyTable {
 public:
  void add_section(std::string_view path, bool repeated, std::string_view meaning);
  /// A second row of a key that has another meaning appends that meaning to the first row.
  void add(std::string_view path, KeyRow row);
  [[nodiscard]] const std::vector<KeySection>& sections() const { return sections_; }

 private:
  std::vector<KeySection> sections_;
};

}  // namespace motley::config
