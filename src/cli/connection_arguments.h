// How processes of a cluster find and trust each other: the arguments that serve, work and train have in common.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::cli {

/// --bulk: what carries slices.
struct BulkArgument {
  std::string name = "auto";
  void add_to(CLI::App& command);
  /// Refuses what this build does not have.
  [[nodiscard]] Result<transport::Bulk> choice() const;
};

struct ConnectionArguments {
  std::string token_file;
  bool no_token = false;
  BulkArgument bulk;
  void add_to(CLI::App& command);
  /// Of a process that listens: --no-token.
  void add_no_token_to(CLI::App& command);
  /// --token-file, or MOTLEY_TOKEN; empty when there is neither, or with --no-token. One line is taken, without what surrounds it.
  [[nodiscard]] Result<std::string> token() const;
  /// What connections of a job are allowed: windows by its slices.
  [[nodiscard]] Result<transport::Options> transport(std::uint64_t slice_bytes) const;
  /// Every user of this machine reaches a TCP port of it, so one without a token must be asked for. A unix socket is its user's alone.
  [[nodiscard]] bool lacks_token(const transport::Address& listen, const transport::Options& allowed) const;
  /// Refuses to listen where a token is lacking.
  [[nodiscard]] Outcome may_listen(const transport::Address& listen, const transport::Options& allowed) const;
};

}  // namespace motley::cli
