// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ClientFiles: all files of one client, and the order in which they end. File 0 is the client
// itself; the others were opened through it.
//
// The end has an order: every file is cleaned up (ClientFile), all requests of all files come back,
// then each file gets Close, one after the other, file 0 last. A driver that keeps a request keeps
// the client.
//
// Thread rule: the executor's thread.
#pragma once

#include "io/client_file.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace ib::io {

class ClientFiles {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The client is ending and it is this file's turn: starts a request and gives it to close().
    virtual void close_file(ClientFile& file) = 0;
    // No file is left after end(). Comes from go_on(); does not destroy the ClientFiles.
    virtual void on_over() = 0;
  };

  explicit ClientFiles(Owner& owner) : owner_(owner) {}
  ClientFiles(const ClientFiles&) = delete;
  ClientFiles& operator=(const ClientFiles&) = delete;

  // Keeps the file until it is closed, and reports that `irp` is about to be sent as its Create.
  // Not after end().
  ClientFile& open(std::unique_ptr<ClientFile> file, Irp& irp);
  // For the next file. A number is not used again soon, so that a use after Close is detected.
  std::uint32_t new_number();
  // Returns nullptr if there is no open file of this number.
  ClientFile* find(std::uint32_t number) const;
  std::size_t size() const { return files_.size(); }  // with file 0
  const std::map<std::uint32_t, std::unique_ptr<ClientFile>>& all() const { return files_; }

  // As of ClientFile. Destroys a file that is closed. The caller sends the request that is
  // returned, which is a Close.
  [[nodiscard]] bool begin(ClientFile& file, Irp& irp);
  [[nodiscard]] std::optional<IrpRef> close(ClientFile& file, IrpRef irp);
  [[nodiscard]] std::optional<IrpRef> end(ClientFile& file, Irp& irp);

  // The client goes. Its next steps follow in go_on().
  void end();
  // After each request that has come back, and after end(). Does nothing for a client that stays.
  void go_on();
  bool is_ending() const { return ending_; }
  bool is_over() const { return over_; }

 private:
  Owner& owner_;
  std::map<std::uint32_t, std::unique_ptr<ClientFile>> files_;
  std::uint32_t last_number_ = 0;
  std::size_t under_way_ = 0;  // requests of all files, and Close requests that wait
  bool ending_ = false;
  bool over_ = false;
  bool in_step_ = false;  // end() or go_on() is running: completions do not take the next step
};

}  // namespace ib::io
