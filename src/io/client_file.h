// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ClientFile: one file of a client, from Create to Close (docs/design/0010). It decides which
// request may be sent next; the client makes the requests and sends them.
//
//   New -> Opening -> Open -> CleaningUp -> Closing -> Closed
//
// * The client reports each request before it is sent (open, begin, close) and when it is back
//   (end).
// * Cleaning up: no further request is accepted, and those under way are cancelled.
// * Close is sent when every other request is back, once, and is not cancelled: a driver has to see
//   it. Its status does not matter, since a file cannot be half closed.
// * A file whose Create fails is Closed; Create is cancelled as other requests are.
// * The removal of a device changes nothing here: its drivers end the requests, and the file is
//   closed as usual.
//
// The object is destroyed before Create, or when it is Closed. A driver that keeps a request keeps
// the file.
//
// Thread rule: the executor's thread. Cancelled requests may come back inside clean_up() and
// close().
#pragma once

#include "io/device.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ib::io {

class IB_DRIVER_API ClientFile {
 public:
  enum class State : std::uint8_t { New, Opening, Open, CleaningUp, Closing, Closed };

  // As of FileObject.
  ClientFile(DeviceObject& device, std::uint32_t number, Client& client, FileObject* process)
      : object_(device, number, client, process) {}
  ClientFile(const ClientFile&) = delete;
  ClientFile& operator=(const ClientFile&) = delete;
  virtual ~ClientFile();

  FileObject& object() { return object_; }
  const FileObject& object() const { return object_; }
  std::uint32_t number() const { return object_.number(); }
  State state() const { return state_; }
  bool is_open() const { return state_ == State::Open; }
  // Requests that were sent and are not back, Create and Close included.
  std::size_t under_way() const { return requests_.size(); }

  // The request is about to be sent as Create. The file is New.
  void open(Irp& irp);
  // The request is about to be sent as DeviceControl. Returns false if the file is not open.
  [[nodiscard]] bool begin(Irp& irp);
  // The request is back. It is still as the drivers have left it.
  void end(Irp& irp);

  // The file takes no further request, and those under way are cancelled. Nothing of the file may
  // be touched afterwards if it was opening, since Create may have failed in here.
  void clean_up();
  // Cleans up. Keeps `irp`, to be sent as Close. The file is Open, or it was and is cleaning up.
  void close(IrpRef irp);
  // Returns the request of close() when it is to be sent: call this after close() and after end().
  [[nodiscard]] std::optional<IrpRef> take_close();

 private:
  void add(Irp& irp, Major major);

  FileObject object_;
  State state_ = State::New;
  bool created_ = false;
  bool cancelling_ = false;  // clean_up() is running
  std::vector<Irp*> requests_;
  std::optional<IrpRef> close_;  // waits for the others
};

}  // namespace ib::io
