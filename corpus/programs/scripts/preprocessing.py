import io

import torch
import torch.nn.functional as F

torch.manual_seed(0)


def decode(blob):
    raw = torch.frombuffer(bytearray(blob), dtype=torch.uint8)
    return raw.view(3, 96, 128).float() / 255


def augment(image):
    image = F.interpolate(image[None], size=(72, 96), mode="bilinear", antialias=True)[0]
    top, left = torch.randint(0, 8, (2,)).tolist()
    image = image[:, top : top + 64, left : left + 64]
    if torch.rand(()) < 0.5:
        image = image.flip(2)
    return (image - image.mean((1, 2), keepdim=True)) / image.std((1, 2), keepdim=True)


blobs = [
    torch.randint(0, 256, (3 * 96 * 128,), dtype=torch.uint8).numpy().tobytes() for _ in range(1500)
]
images = []
for blob in blobs:
    images.append(augment(decode(blob)).half())
packed = torch.stack(images)
buffer = io.BytesIO()
torch.save(packed, buffer)
print(packed.shape, len(buffer.getvalue()) // 1024, "KiB")
