#include "app/doors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace motley::app {

void DoorArguments::add_to(CLI::App& command) {
  command.add_option("--token-file", token_file, "file with the secret that all processes of the cluster share (or set MOTLEY_TOKEN)");
}

Result<std::string> DoorArguments::token() const {
  std::string token;
  if (!token_file.empty()) {
    std::ifstream file(token_file);
    if (!file || !std::getline(file, token))
      return bad_input(
          fmt::format("--token-file {}: found no line of text, expected a file with the secret in its first line", token_file));
  } else if (const char* set = std::getenv("MOTLEY_TOKEN")) {
    token = set;
  }
  const auto blank = [](unsigned char c) { return c <= ' '; };
  while (!token.empty() && blank(static_cast<unsigned char>(token.back()))) token.pop_back();
  while (!token.empty() && blank(static_cast<unsigned char>(token.front()))) token.erase(token.begin());
  if (!token_file.empty() && token.empty())
    return bad_input(fmt::format("--token-file {}: found an empty line, expected a secret", token_file));
  return token;
}

transport::Options transport_options(const std::string& token, std::uint64_t slice_bytes) {
  transport::Options options;
  options.token = token;
  options.slice_bytes = slice_bytes;
  options.window_bytes = std::max<std::size_t>(options.window_bytes, 4 * slice_bytes);
  return options;
}

}  // namespace motley::app
