// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <vector>

namespace ib::softib {
namespace {

constexpr std::size_t kFileBytes = 1u << 20;
constexpr std::size_t kOldFiles = 2;

class FileLog : public DaemonLog {
 public:
  explicit FileLog(const std::vector<spdlog::sink_ptr>& sinks)
      : logger_("softibd", sinks.begin(), sinks.end()) {
    logger_.set_pattern("%Y-%m-%d %H:%M:%S.%e %L %v");
    // Flushed line by line, so that the last line survives a crash; there are few lines.
    logger_.flush_on(spdlog::level::info);
  }
  void info(std::string_view line) override { logger_.info("{}", line); }
  void warn(std::string_view line) override { logger_.warn("{}", line); }
  void error(std::string_view line) override { logger_.error("{}", line); }

 private:
  spdlog::logger logger_;
};

class NoLog : public DaemonLog {
 public:
  void info(std::string_view) override {}
  void warn(std::string_view) override {}
  void error(std::string_view) override {}
};

}  // namespace

Result<std::unique_ptr<DaemonLog>> open_log(const std::string& path, bool also_stderr,
                                            std::string& reason) {
  try {
    std::vector<spdlog::sink_ptr> sinks{
        std::make_shared<spdlog::sinks::rotating_file_sink_mt>(path, kFileBytes, kOldFiles)};
    if (also_stderr) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    return std::unique_ptr<DaemonLog>(std::make_unique<FileLog>(sinks));
  } catch (const spdlog::spdlog_ex& error) {
    reason = std::string("cannot write the log: ") + error.what();
    return Status::IoError;
  }
}

std::unique_ptr<DaemonLog> no_log() {
  return std::make_unique<NoLog>();
}

std::string count_of(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace ib::softib
