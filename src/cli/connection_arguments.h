// The arguments with which the processes of a cluster connect and authenticate: shared by chief, server, worker, stage and train.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "transport/address.h"
#include "transport/options.h"

namespace motley::cli {

/// --bulk: the transport of slices.
struct BulkArgument {
  std::string name = "auto";
  void add_to(CLI::App& command);
  /// Refuses a choice that this build does not have.
  [[nodiscard]] Result<transport::Bulk> choice() const;
};

struct ConnectionArguments {
  std::string token_file;
  bool no_token = false;
  BulkArgument bulk;
  void add_to(CLI::App& command);
  /// For processes that listen: --no-token.
  void add_no_token_to(CLI::App& command);
  /// The token from --token-file or MOTLEY_TOKEN, one line without surrounding white space; empty when there is neither, or with
  /// --no-token.
  [[nodiscard]] Result<std::string> token() const;
  /// The transport's options for a job; the window depends on its slice size.
  [[nodiscard]] Result<transport::Options> transport(std::uint64_t slice_bytes) const;
  /// Whether a token is missing: every user of this machine can connect to a TCP port, so listening without one needs --no-token. A unix
  /// socket is accessible to its user only.
  [[nodiscard]] bool lacks_token(const transport::Address& listen, const transport::Options& allowed) const;
  /// Refuses to listen where a token is missing.
  [[nodiscard]] Outcome may_listen(const transport::Address& listen, const transport::Options& allowed) const;
};

}  // namespace motley::cli
